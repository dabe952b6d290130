//! The host of the drive under test: what QEMU and Linux do between them until the first command may be sent.
//!
//! Hellos; the device connects; configuration 1; the alternate setting that is UAS, found by its descriptors;
//! streams on its pipes (UAS-2 clause 5.2.3); the unit attention of a new nexus is taken; the capacity is read.
//! Left out: every other answer a drive may give to these. It is an error and ends the measurement.

use super::link::{self, Link};
use anyhow::{Context, Result, bail, ensure};
use std::os::unix::net::UnixStream;
use std::path::Path;
use wire::scsi::Status as ScsiStatus;
use wire::scsi::capacity::Capacity10;
use wire::scsi::cdb::{Cdb, ReadCapacity10, TestUnitReady};
use wire::uas::{CommandIu, PipeUsage, StatusIu, TaskAttribute};
use wire::usb::{
    ClassCode, Descriptor, DescriptorKind, Descriptors, Direction, Recipient, RequestKind, SetupPacket,
    StandardRequest,
};
use wire::usbredir::{
    AllocBulkStreams, AltSettingStatus, BulkPacket, BulkStreamsStatus, Capabilities, Capability,
    ConfigurationStatus, ControlPacket, EndpointInfo, EndpointSet, Hello, PacketType, SetAltSetting,
    SetConfiguration, Status,
};

/// Capabilities that QEMU offers and a drive behind its xHCI needs.
const OFFERED: Capabilities = Capabilities::of(&[
    Capability::BulkStreams,
    Capability::ConnectDeviceVersion,
    Capability::EndpointInfoMaxPacketSize,
    Capability::Ids64Bits,
    Capability::BulkLength32Bits,
]);

/// The status buffer of Linux: a SENSE IU with 96 bytes of sense data.
pub(super) const STATUS_BUFFER_BYTES: u32 = 112;

/// The addresses of the four UAS pipes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipes {
    pub(super) command: u8,
    pub(super) status: u8,
    pub(super) data_in: u8,
    pub(super) data_out: u8,
}

/// A configured drive.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) link: Link,
    pub(super) pipes: Pipes,
    /// Streams of each pipe: the largest tag.
    pub(super) streams: u16,
    /// Bytes of a logical block.
    pub(super) block_bytes: u32,
    /// Bytes of the unit.
    pub(super) capacity_bytes: u64,
}

/// The data phase of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum DataPhase<'a> {
    None,
    /// At most so many bytes from the drive.
    In(u32),
    /// These bytes to the drive.
    Out(&'a [u8]),
}

impl Host {
    /// Connects to a server and makes its drive ready.
    pub(super) fn connect(socket: &Path) -> Result<Self> {
        let stream =
            UnixStream::connect(socket).with_context(|| format!("connect to {}", socket.display()))?;
        let mut setup = Setup { link: Link::new(stream, Capabilities::NONE), endpoints: EndpointInfo::EMPTY };
        setup.greet()?;
        setup.expect(PacketType::DeviceConnect)?;
        let (alternate, pipes) = setup.uas()?;
        setup.configure(alternate)?;
        let streams = setup.streams(pipes)?;
        let none = Self { link: setup.link, pipes, streams, block_bytes: 0, capacity_bytes: 0 };
        none.ready()
    }

    /// Takes the unit attention that a new nexus finds, and reads the capacity.
    fn ready(mut self) -> Result<Self> {
        /// Power on, and what else a unit may report: one attention with each command.
        const ATTENTIONS_MAX: u32 = 4;
        let mut attentions = 0;
        while self.command(&TestUnitReady::default().encode(), DataPhase::None)?.0 != ScsiStatus::Good {
            attentions += 1;
            ensure!(attentions <= ATTENTIONS_MAX, "the unit does not become ready");
        }
        let (status, bytes) = self.command(&ReadCapacity10::default().encode(), DataPhase::In(8))?;
        ensure!(status == ScsiStatus::Good, "READ CAPACITY(10) ends with {status}");
        let capacity = Capacity10::decode(&bytes)?;
        self.block_bytes = capacity.block_length;
        self.capacity_bytes = (u64::from(capacity.last_lba) + 1) * u64::from(capacity.block_length);
        Ok(self)
    }

    /// Runs one command alone: how it ended, and the bytes that it brought.
    fn command(&mut self, cdb: &Cdb, phase: DataPhase<'_>) -> Result<(ScsiStatus, Vec<u8>)> {
        let request = request(self.pipes, self.link.capabilities, 1, cdb, phase)?;
        self.link.queue(&request);
        self.link.flush()?;
        let mut outstanding = if matches!(phase, DataPhase::None) { 2 } else { 3 };
        let (mut status, mut brought) = (None, Vec::new());
        while outstanding > 0 {
            let (header, body) = self.link.wait()?;
            ensure!(header.kind == PacketType::BulkPacket, "{header} in the middle of a command");
            let bulk = BulkPacket::decode(&body, self.link.capabilities)?;
            let payload = &body[BulkPacket::len(self.link.capabilities)..];
            outstanding -= 1;
            if bulk.endpoint == self.pipes.status {
                ensure!(bulk.status == Status::Success, "{bulk}");
                match StatusIu::decode(payload)? {
                    StatusIu::Sense(iu) => status = Some(iu.status),
                    other => bail!("{other} answers {cdb}"),
                }
            } else if bulk.endpoint == self.pipes.data_in {
                brought = payload.to_vec();
            }
        }
        Ok((status.context("a command without a status")?, brought))
    }
}

/// A drive that is not yet configured.
struct Setup {
    link: Link,
    /// Endpoint information that the drive sent last.
    endpoints: EndpointInfo,
}

impl Setup {
    /// Both hellos. What both sides have holds from the next packet on.
    fn greet(&mut self) -> Result<()> {
        self.link.queue_packet(Hello::new("uaskit bench"), 0, &OFFERED.encode())?;
        let body = self.expect(PacketType::Hello)?;
        let theirs = Capabilities::decode(&body[Hello::LEN..]);
        self.link.capabilities = OFFERED.intersection(theirs);
        ensure!(self.link.capabilities == OFFERED, "the drive offers only {theirs}");
        Ok(())
    }

    /// The alternate setting that is UAS, and its pipes, from the descriptors of the configuration.
    fn uas(&mut self) -> Result<(u8, Pipes)> {
        let setup = SetupPacket {
            direction: Direction::In,
            kind: RequestKind::Standard,
            recipient: Recipient::Device,
            request: StandardRequest::GetDescriptor.into(),
            value: u16::from_be_bytes([DescriptorKind::Configuration.into(), 0]),
            index: 0,
            length: u16::MAX,
        };
        let SetupPacket { request, value, index, length, .. } = setup;
        let (request_type, endpoint) = (setup.request_type(), Direction::In.bit_7());
        let status = Status::Success;
        let packet = ControlPacket { endpoint, request, request_type, status, value, index, length };
        self.link.queue_packet(packet, 1, &[])?;
        let body = self.expect(PacketType::ControlPacket)?;
        find_uas(&body[ControlPacket::LEN..]).context("the drive offers no UAS")
    }

    fn configure(&mut self, alternate: u8) -> Result<()> {
        self.link.queue_packet(SetConfiguration { configuration: 1 }, 2, &[])?;
        let answer = ConfigurationStatus::decode(&self.expect(PacketType::ConfigurationStatus)?)?;
        ensure!(answer.status == Status::Success, "{answer}");
        self.link.queue_packet(SetAltSetting { interface: 0, alternate }, 3, &[])?;
        let answer = AltSettingStatus::decode(&self.expect(PacketType::AltSettingStatus)?)?;
        ensure!(answer.status == Status::Success, "{answer}");
        Ok(())
    }

    /// Allocates as many streams as the pipes have.
    fn streams(&mut self, pipes: Pipes) -> Result<u16> {
        let addresses = [pipes.status, pipes.data_in, pipes.data_out];
        let count = addresses.map(|address| self.endpoints.endpoint(address).max_streams);
        let count =
            count.into_iter().min().filter(|&count| count > 0).context("the pipes have no streams")?;
        let endpoints = EndpointSet::of(&addresses);
        self.link.queue_packet(AllocBulkStreams { endpoints, count }, 4, &[])?;
        let answer = BulkStreamsStatus::decode(&self.expect(PacketType::BulkStreamsStatus)?)?;
        ensure!(answer.status == Status::Success && answer.count == count, "{answer}");
        Ok(u16::try_from(count)?)
    }

    /// Sends what is queued and waits for a packet of this kind; what the drive sends in between is noted.
    fn expect(&mut self, wanted: PacketType) -> Result<Vec<u8>> {
        self.link.flush()?;
        loop {
            let (header, body) = self.link.wait().with_context(|| format!("wait for {wanted}"))?;
            match header.kind {
                kind if kind == wanted => return Ok(body),
                PacketType::EndpointInfo => {
                    self.endpoints = EndpointInfo::decode(&body, self.link.capabilities)?;
                }
                PacketType::InterfaceInfo | PacketType::FilterFilter => {}
                other => bail!("{other} where {wanted} was to come"),
            }
        }
    }
}

/// The packets that begin a command, in the order of Linux: status URB, data URB, COMMAND IU.
pub(super) fn request(
    pipes: Pipes,
    capabilities: Capabilities,
    tag: u16,
    cdb: &Cdb,
    phase: DataPhase<'_>,
) -> Result<Vec<u8>> {
    let iu = CommandIu {
        tag,
        attribute: TaskAttribute::Simple,
        priority: 0,
        lun: [0; 8],
        cdb: cdb.padded(),
        additional_cdb: &[],
    };
    let mut out = Vec::new();
    let iu = iu.encode();
    let data_transfer = match phase {
        DataPhase::None => None,
        DataPhase::In(length) => Some((pipes.data_in, length, tag, &[][..])),
        DataPhase::Out(bytes) => Some((pipes.data_out, bytes.len() as u32, tag, bytes)),
    };
    let first = (pipes.status, STATUS_BUFFER_BYTES, tag, &[][..]);
    let last = (pipes.command, iu.len() as u32, 0, &iu[..]);
    let transfers = [Some(first), data_transfer, Some(last)].into_iter().flatten();
    for (nth, (endpoint, length, stream, payload)) in (0..).zip(transfers) {
        let packet = BulkPacket { endpoint, status: Status::Success, length, stream_id: stream.into() };
        link::put(&mut out, packet.into(), packet_id(tag, nth), payload, capabilities)?;
    }
    Ok(out)
}

/// The alternate setting of class UAS and its pipes, among the descriptors of a configuration.
fn find_uas(descriptors: &[u8]) -> Option<(u8, Pipes)> {
    let (mut alternate, mut endpoint) = (None, 0);
    let mut addresses = [None; 4];
    for descriptor in Descriptors::new(descriptors).flatten() {
        match descriptor {
            Descriptor::Interface(interface) => {
                alternate = (interface.class == ClassCode::UAS).then_some(interface.alternate).or(alternate);
            }
            Descriptor::Endpoint(found) => endpoint = found.address.into(),
            Descriptor::PipeUsage(usage) => {
                let place = match usage.usage {
                    PipeUsage::Command => 0,
                    PipeUsage::Status => 1,
                    PipeUsage::DataIn => 2,
                    PipeUsage::DataOut => 3,
                    PipeUsage::Unknown(_) => continue,
                };
                addresses[place] = Some(endpoint);
            }
            _ => {}
        }
    }
    let [command, status, data_in, data_out] = addresses;
    let pipes = Pipes { command: command?, status: status?, data_in: data_in?, data_out: data_out? };
    Some((alternate?, pipes))
}

/// The id of the `nth` packet of a command: an answer names its command by it.
pub(super) const fn packet_id(tag: u16, nth: u64) -> u64 {
    tag as u64 * PACKETS_MAX + nth
}

/// The tag of the command that a packet id belongs to.
pub(super) const fn packet_tag(id: u64) -> u16 {
    (id / PACKETS_MAX) as u16
}

/// More packets than begin any command.
const PACKETS_MAX: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uas_is_found_by_class_and_pipe_usage() {
        let descriptors = [
            &[9, 4, 0, 0, 1, 8, 6, 0x50, 0][..],
            &[7, 5, 0x81, 2, 0, 4, 0],
            &[9, 4, 0, 1, 4, 8, 6, 0x62, 0],
            &[7, 5, 0x04, 2, 0, 4, 0, 6, 0x30, 0, 0, 0, 0, 4, 0x24, 1, 0],
            &[7, 5, 0x83, 2, 0, 4, 0, 6, 0x30, 0, 5, 0, 0, 4, 0x24, 2, 0],
            &[7, 5, 0x81, 2, 0, 4, 0, 6, 0x30, 0, 5, 0, 0, 4, 0x24, 3, 0],
            &[7, 5, 0x02, 2, 0, 4, 0, 6, 0x30, 0, 5, 0, 0, 4, 0x24, 4, 0],
        ]
        .concat();
        let (alternate, Pipes { command, status, data_in, data_out }) = find_uas(&descriptors).unwrap();
        assert_eq!((alternate, command, status, data_in, data_out), (1, 0x04, 0x83, 0x81, 0x02));
        assert!(find_uas(&descriptors[..40]).is_none());
    }
}
