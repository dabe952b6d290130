//! The packets that are not bulk: hello, configuration, streams, control transfers, cancels.
//!
//! Each is answered at once and in the order of arrival. A changed configuration is reported by both infos before
//! its status. Left out: bulk packets, whose answers come when the device has them.

use super::layout::{self, Layout};
use super::pace::StatusPace;
use super::{Exported, Fault, Peer, Session};
use device::Verdict;
use wire::usb::{Direction, Recipient, RequestKind, SetupPacket, StandardRequest};
use wire::usbredir::{
    AllocBulkStreams, AltSettingStatus, BulkStreamsStatus, Capabilities, ConfigurationStatus, ControlPacket,
    EndpointSet, FreeBulkStreams, Hello, InterruptPacket, IsoStreamStatus, Packet, SetAltSetting, Status,
};

/// The address that the device is given. Which one is of no matter: it is alone on its bus.
const ADDRESS: u16 = 1;
/// The alternate setting in an [`AltSettingStatus`] that does not know it.
const UNKNOWN_ALTERNATE: u8 = 255;

impl Session {
    /// Answers one packet. Its layout, its length and its direction are right.
    pub(super) fn request(
        &mut self,
        id: u64,
        packet: Packet,
        payload: &[u8],
        device: &mut impl Exported,
    ) -> Result<(), Fault> {
        match packet {
            Packet::Hello(hello) => self.hello(hello, payload, device),
            Packet::Reset => {
                device.bus_reset();
                self.address(device);
                // Answers to what the reset has ended go before anything that comes after it.
                self.collect(device);
            }
            Packet::SetConfiguration(wanted) => {
                let setup =
                    set(Recipient::Device, StandardRequest::SetConfiguration, wanted.configuration.into(), 0);
                let status = self.configure(setup, device);
                let configuration = device.device().configuration();
                self.send(id, ConfigurationStatus { status, configuration });
            }
            Packet::GetConfiguration => {
                let configuration = device.device().configuration();
                self.send(id, ConfigurationStatus { status: Status::Success, configuration });
            }
            Packet::SetAltSetting(SetAltSetting { interface, alternate }) => {
                let setup =
                    set(Recipient::Interface, StandardRequest::SetInterface, alternate.into(), interface);
                let status = self.configure(setup, device);
                let alternate = alternate_setting(interface, device);
                self.send(
                    id,
                    AltSettingStatus { status, interface, alternate: alternate.unwrap_or(UNKNOWN_ALTERNATE) },
                );
            }
            Packet::GetAltSetting(wanted) => {
                let interface = wanted.interface;
                let (status, alternate) = match alternate_setting(interface, device) {
                    Some(alternate) => (Status::Success, alternate),
                    None => (Status::Stall, UNKNOWN_ALTERNATE),
                };
                self.send(id, AltSettingStatus { status, interface, alternate });
            }
            Packet::AllocBulkStreams(AllocBulkStreams { endpoints, count }) => {
                let (status, count) = match self.layout.streams_granted(endpoints, count) {
                    Some(streams) => {
                        self.set_streams(endpoints, streams, device);
                        (Status::Success, count)
                    }
                    None => (Status::Invalid, 0),
                };
                self.send(id, BulkStreamsStatus { endpoints, count, status });
            }
            Packet::FreeBulkStreams(FreeBulkStreams { endpoints }) => {
                self.set_streams(endpoints, 0, device);
                self.send(id, BulkStreamsStatus { endpoints, count: 0, status: Status::Success });
            }
            // The answer is the transfer's own, now or earlier.
            Packet::CancelDataPacket => {
                device.cancel(id);
            }
            Packet::ControlPacket(packet) => self.control(id, packet, payload, device),
            Packet::FilterReject => return Err(Fault::Refused),
            other => return self.receive_repeatedly(id, other, device),
        }
        Ok(())
    }

    fn hello(&mut self, hello: Hello, payload: &[u8], device: &mut impl Exported) {
        if self.peer().is_some() {
            return; // a second one is read over, as the reference parser does
        }
        let version = hello.version().escape_ascii().to_string();
        let capabilities = super::session::OFFERED.intersection(Capabilities::decode(payload));
        self.open(Peer { version, capabilities });
        self.address(device);
        self.send_layout();
        self.send(0, layout::device_connect(device.device()));
    }

    /// Does what a host's hub driver does after a reset. The device has no configuration now.
    fn address(&mut self, device: &mut impl Exported) {
        device.control(set(Recipient::Device, StandardRequest::SetAddress, ADDRESS, 0), &[]);
        self.layout = Layout::of(device.device());
    }

    /// Carries out a request that selects a configuration or an alternate setting.
    fn configure(&mut self, setup: SetupPacket, device: &mut impl Exported) -> Status {
        if device.control(setup, &[]) == Verdict::Stall {
            return Status::Stall;
        }
        self.restart(device);
        Status::Success
    }

    /// The endpoints have another meaning now. The transfers that were meant for the earlier one have ended, and their answers go
    /// before the new layout: usbredirhost cancels them first, and QEMU may reuse an id after that.
    fn restart(&mut self, device: &mut impl Exported) {
        self.layout = Layout::of(device.device());
        self.collect(device);
        self.send_layout();
    }

    /// Allocates or frees streams. Transfers that are queued on an endpoint whose streams change are cancelled, as the kernel of a
    /// real host does, and their answers go before the status.
    fn set_streams(&mut self, endpoints: EndpointSet, streams: u16, device: &mut impl Exported) {
        for address in self.layout.changed_by(endpoints, streams) {
            device.cancel_at(address);
        }
        // The streams that earlier answers belong to are gone, and so is the proof that the guest takes them.
        self.layout.pace = StatusPace::new(0);
        self.collect(device);
        self.layout.set_streams(endpoints, streams);
    }

    fn send_layout(&mut self) {
        self.send(0, self.layout.interface_info());
        self.send(0, self.layout.endpoint_info());
    }

    fn control(&mut self, id: u64, packet: ControlPacket, data_out: &[u8], device: &mut impl Exported) {
        let [value, index, length] = [packet.value, packet.index, packet.length].map(u16::to_le_bytes);
        let is_in = packet.endpoint == 0x80;
        if !matches!(packet.endpoint, 0x00 | 0x80) || is_in != layout::is_in(packet.request_type) {
            return self.send(id, ControlPacket { status: Status::Invalid, length: 0, ..packet });
        }
        let setup = SetupPacket::from([
            packet.request_type,
            packet.request,
            value[0],
            value[1],
            index[0],
            index[1],
            length[0],
            length[1],
        ]);
        let verdict = device.control(setup, data_out);
        // QEMU has separate packets for these two; other clients may not know that.
        if setup.selects_setting() && verdict != Verdict::Stall {
            self.restart(device);
        }
        match verdict {
            Verdict::Data(bytes) if is_in => {
                let bytes = &bytes[..bytes.len().min(packet.length.into())];
                let length = bytes.len() as u16;
                self.send_with(id, ControlPacket { status: Status::Success, length, ..packet }, bytes);
            }
            Verdict::Data(_) | Verdict::Done => {
                let length = if is_in { 0 } else { packet.length };
                self.send(id, ControlPacket { status: Status::Success, length, ..packet });
            }
            Verdict::Stall => self.send(id, ControlPacket { status: Status::Stall, length: 0, ..packet }),
        }
    }

    /// Answers packets of transfers that the host repeats by itself.
    fn receive_repeatedly(
        &mut self,
        id: u64,
        packet: Packet,
        device: &mut impl Exported,
    ) -> Result<(), Fault> {
        match packet {
            Packet::StartInterruptReceiving(wanted) => {
                return self.start_interrupts(id, wanted.endpoint, device);
            }
            Packet::StopInterruptReceiving(wanted) => self.stop_interrupts(id, wanted.endpoint, device),
            other => self.refuse(id, other),
        }
        Ok(())
    }

    /// Answers what is for endpoints that a drive does not have; the rest needs no answer.
    fn refuse(&mut self, id: u64, packet: Packet) {
        let status = Status::Invalid;
        let iso = |endpoint| IsoStreamStatus { status, endpoint };
        match packet {
            Packet::StartIsoStream(wanted) => self.send(id, iso(wanted.endpoint)),
            Packet::StopIsoStream(wanted) => self.send(id, iso(wanted.endpoint)),
            Packet::IsoPacket(wanted) => self.send(id, iso(wanted.endpoint)),
            Packet::InterruptPacket(wanted) => {
                self.send(id, InterruptPacket { endpoint: wanted.endpoint, status, length: 0 });
            }
            _ => {}
        }
    }
}

/// The alternate setting of an interface, if it has one.
fn alternate_setting(interface: u8, device: &mut impl Exported) -> Option<u8> {
    let setup = SetupPacket {
        direction: Direction::In,
        kind: RequestKind::Standard,
        recipient: Recipient::Interface,
        request: StandardRequest::GetInterface.into(),
        value: 0,
        index: interface.into(),
        length: 1,
    };
    match device.control(setup, &[]) {
        Verdict::Data(bytes) => bytes.first().copied(),
        Verdict::Done | Verdict::Stall => None,
    }
}

/// A standard request without data.
fn set(recipient: Recipient, request: StandardRequest, value: u16, interface: u8) -> SetupPacket {
    SetupPacket {
        direction: Direction::Out,
        kind: RequestKind::Standard,
        recipient,
        request: request.into(),
        value,
        index: interface.into(),
        length: 0,
    }
}
