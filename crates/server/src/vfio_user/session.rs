//! Messages of one client, and their answers.
//!
//! Bytes and descriptors go in by [`Session::receive`]; messages are carried out in order; replies wait in
//! [`Session::outgoing`]. A command that fails is answered with an error number; what is against the protocol ends the
//! session ([`Fault`]).

use super::fault::Fault;
use super::function::Function;
use super::interrupts::Interrupts;
use super::registers::AREA;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use wire::vfio_user::{
    Command, DeviceFlags, DeviceInfo, DmaFlags, DmaMap, DmaUnmap, Header, HeaderFlags, Interrupt, IrqFlags,
    IrqInfo, IrqSet, IrqSetFlags, RegionAccess, RegionFlags, RegionInfo, SparseArea, SparseMmap, Version,
    WriteMulti, region_index,
};
use wire::{DecodeError, Writer};

/// The longest message that is taken: configuration space is the largest thing that a client moves.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Descriptors of a message.
pub(super) const DESCRIPTORS_MAX: usize = 16;
/// Bytes of replies that may wait before further messages do.
const OUTGOING_BYTES_MAX: usize = 256 << 10;

/// Our capabilities: what a client may send at once.
const CAPABILITIES: &str = concat!(
    "{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":32768,\"max_dma_maps\":256,",
    "\"pgsizes\":4096,\"write_multiple\":true}}"
);

/// The conversation with one client.
#[derive(Debug, Default)]
pub struct Session {
    /// Bytes that are not handled yet.
    received: Vec<u8>,
    /// Bytes handled since the beginning.
    handled: u64,
    /// Descriptors, and the offset of the last byte that came with them.
    descriptors: VecDeque<(u64, Vec<OwnedFd>)>,
    outgoing: Vec<u8>,
    /// Bytes of it that were sent.
    sent: usize,
    /// Where the replies begin that bring the file of the function's registers.
    files: VecDeque<usize>,
    has_version: bool,
}

/// Result of a command: the body of the reply, or an error number.
type Outcome = Result<Vec<u8>, Errno>;

impl Session {
    /// A session before the first message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the client has sent VERSION.
    pub const fn has_version(&self) -> bool {
        self.has_version
    }

    /// Bytes that can be received now; 0 while the client does not read its replies.
    pub fn room(&self) -> usize {
        if self.outgoing.len() - self.sent > OUTGOING_BYTES_MAX {
            return 0;
        }
        MESSAGE_BYTES_MAX.saturating_sub(self.received.len())
    }

    /// Takes bytes, and the descriptors that came with the last of them, and carries out every message that is complete.
    ///
    /// # Errors
    /// [`Fault`]: the session is over.
    pub fn receive(&mut self, bytes: &[u8], fds: Vec<OwnedFd>, function: &mut Function) -> Result<(), Fault> {
        self.received.extend_from_slice(bytes);
        if !fds.is_empty() {
            // All that was received belongs to messages not handled yet, so that this byte is one of theirs.
            let last = self.handled + (self.received.len() as u64).saturating_sub(1);
            self.descriptors.push_back((last, fds));
        }
        let received = std::mem::take(&mut self.received);
        let mut rest = &received[..];
        let outcome = loop {
            match self.take_message(rest, function) {
                Ok(0) => break Ok(()),
                Ok(taken) => {
                    rest = &rest[taken..];
                    self.handled += taken as u64;
                }
                Err(fault) => break Err(fault),
            }
        };
        let taken = received.len() - rest.len();
        self.received = received;
        self.received.drain(..taken);
        outcome
    }

    /// Replies that were not sent.
    pub fn outgoing(&self) -> &[u8] {
        &self.outgoing[self.sent..]
    }

    /// The first `count` bytes of them were sent.
    pub fn sent(&mut self, count: usize) {
        self.sent += count;
        while self.files.pop_front_if(|at| *at < self.sent).is_some() {}
        if self.sent >= self.outgoing.len() {
            self.outgoing.clear();
            self.sent = 0;
        }
    }

    /// Returns the replies to send next, and whether their first byte brings the file of the function's registers.
    pub fn next_outgoing(&self) -> (&[u8], bool) {
        let brings_file = self.files.front() == Some(&self.sent);
        let end = self.files.get(usize::from(brings_file)).copied().unwrap_or(self.outgoing.len());
        (&self.outgoing[self.sent..end], brings_file)
    }

    /// Carries out the first message, if it is complete. Returns its length, else 0.
    fn take_message(&mut self, bytes: &[u8], function: &mut Function) -> Result<usize, Fault> {
        if bytes.len() < Header::LEN {
            return Ok(0);
        }
        let header = Header::decode(bytes).map_err(Fault::Header)?;
        let length = header.length as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(Fault::TooLong(header.length));
        }
        let Some(body) = bytes.get(Header::LEN..length) else { return Ok(0) };
        let fds = self.take_descriptors(self.handled + length as u64)?;
        // A reply answers nothing that was asked.
        if !header.flags.has(HeaderFlags::REPLY) {
            self.carry_out(&header, body, fds, function)?;
        }
        Ok(length)
    }

    /// Takes the descriptors that came with bytes before `end`.
    fn take_descriptors(&mut self, end: u64) -> Result<Vec<OwnedFd>, Fault> {
        let mut taken = Vec::new();
        while let Some((_, fds)) = self.descriptors.pop_front_if(|(last, _)| *last < end) {
            taken.extend(fds);
            if taken.len() > DESCRIPTORS_MAX {
                return Err(Fault::TooManyDescriptors);
            }
        }
        Ok(taken)
    }

    fn carry_out(
        &mut self,
        header: &Header,
        body: &[u8],
        fds: Vec<OwnedFd>,
        function: &mut Function,
    ) -> Result<(), Fault> {
        if !self.has_version && header.command != Command::Version {
            return Err(Fault::BeforeVersion(header.command));
        }
        let outcome = match header.command {
            Command::Version => Ok(self.negotiate(body)?),
            Command::DmaMap => map(body, fds, function)?,
            Command::DmaUnmap => unmap(body, function),
            Command::DeviceInfo => device_info(body),
            Command::RegionInfo => {
                let outcome = region_info(body, function);
                if outcome.as_ref().is_ok_and(|reply| reply.len() > RegionInfo::LEN) {
                    self.files.push_back(self.outgoing.len());
                }
                outcome
            }
            Command::IrqInfo => irq_info(body),
            Command::IrqSet => set_irqs(body, fds, function),
            Command::RegionRead => read_region(body, function),
            Command::RegionWrite => write_region(body, function),
            Command::RegionWriteMulti => write_regions(body, function),
            Command::DeviceReset => {
                function.reset();
                Ok(Vec::new())
            }
            _ => Err(Errno::NOTSUP),
        };
        if header.flags.has(HeaderFlags::NO_REPLY) {
            while self.files.pop_back_if(|at| *at >= self.outgoing.len()).is_some() {}
        } else {
            self.reply(header, &outcome);
        }
        Ok(())
    }

    fn reply(&mut self, header: &Header, outcome: &Outcome) {
        match outcome {
            Ok(body) => {
                self.outgoing.extend_from_slice(&header.reply(body.len() as u32).encode());
                self.outgoing.extend_from_slice(body);
            }
            Err(error) => {
                let number = u32::try_from(error.raw_os_error()).unwrap_or_default();
                self.outgoing.extend_from_slice(&header.failure(number).encode());
            }
        }
    }

    fn negotiate(&mut self, body: &[u8]) -> Result<Vec<u8>, Fault> {
        let version = Version::decode(body).map_err(|error| Fault::Version(error.to_string()))?;
        if self.has_version {
            return Err(Fault::Version("sent twice".into()));
        }
        if version.major != 0 {
            let reason = format!("major version {} (this server has 0)", version.major);
            return Err(Fault::Version(reason));
        }
        if !version.json.is_empty()
            && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(version.json)
        {
            return Err(Fault::Version(format!("capabilities: {error}")));
        }
        self.has_version = true;
        let answer = Version { major: 0, minor: version.minor.min(1), json: CAPABILITIES };
        let mut bytes = vec![0; Version::LEN_MIN + CAPABILITIES.len() + 1];
        let mut out = Writer::new(&mut bytes);
        let written = answer.encode(&mut out).map(|()| out.written()).unwrap_or_default();
        bytes.truncate(written);
        Ok(bytes)
    }
}

/// A body that cannot be decoded is an invalid argument.
const fn invalid(_: DecodeError) -> Errno {
    Errno::INVAL
}

fn map(body: &[u8], mut fds: Vec<OwnedFd>, function: &mut Function) -> Result<Outcome, Fault> {
    let Ok(map) = DmaMap::decode(body) else { return Ok(Err(Errno::INVAL)) };
    if fds.len() > 1 {
        return Ok(Err(Errno::INVAL));
    }
    // The memory at address 0 is the guest's main memory. ROMs and memory of other devices may come without a descriptor.
    if fds.is_empty() && map.address == 0 && map.flags.has(DmaFlags::WRITE) {
        return Err(Fault::MemoryNotShared);
    }
    Ok(function.memory.map(&map, fds.pop()).map(|()| Vec::new()))
}

fn unmap(body: &[u8], function: &mut Function) -> Outcome {
    let unmap = DmaUnmap::decode(body).map_err(invalid)?;
    function.memory.unmap(&unmap)?;
    Ok(unmap.encode().to_vec())
}

fn device_info(body: &[u8]) -> Outcome {
    DeviceInfo::decode(body).map_err(invalid)?;
    let info = DeviceInfo {
        size: DeviceInfo::LEN as u32,
        flags: DeviceFlags::RESET.with(DeviceFlags::PCI),
        regions: region_index::COUNT,
        interrupts: u32::from(Interrupt::Request) + 1,
    };
    Ok(info.encode().to_vec())
}

/// The reply for a region that can be mapped has a capability behind, if the client has room, and then brings a file.
fn region_info(body: &[u8], function: &Function) -> Outcome {
    let RegionInfo { index, size: room, .. } = RegionInfo::decode(body).map_err(invalid)?;
    if index >= region_index::COUNT {
        return Err(Errno::INVAL);
    }
    let length = Function::region_bytes(index);
    let flags = if length > 0 { RegionFlags::READ.with(RegionFlags::WRITE) } else { RegionFlags::EMPTY };
    let size = RegionInfo::LEN as u32;
    let info = RegionInfo { size, flags, index, capability_offset: 0, length, offset: 0 };
    if index != region_index::BAR0 || function.memory.registers.is_none() {
        return Ok(info.encode().to_vec());
    }
    let size = (RegionInfo::LEN + SparseMmap::LEN + SparseArea::LEN) as u32;
    let flags = flags.with(RegionFlags::MMAP).with(RegionFlags::CAPABILITIES);
    let info = RegionInfo { size, flags, capability_offset: RegionInfo::LEN as u32, ..info };
    let mut reply = info.encode().to_vec();
    if room >= size {
        reply.extend(SparseMmap { areas: 1 }.encode());
        reply.extend(SparseArea { offset: AREA.start, length: AREA.end - AREA.start }.encode());
    }
    Ok(reply)
}

fn irq_info(body: &[u8]) -> Outcome {
    let IrqInfo { kind, .. } = IrqInfo::decode(body).map_err(invalid)?;
    if u32::from(kind) > u32::from(Interrupt::Request) {
        return Err(Errno::INVAL);
    }
    let count = Interrupts::count(kind);
    let flags = if count > 0 { IrqFlags::EVENTFD.with(IrqFlags::NO_RESIZE) } else { IrqFlags::EMPTY };
    Ok(IrqInfo { size: IrqInfo::LEN as u32, flags, kind, count }.encode().to_vec())
}

fn set_irqs(body: &[u8], fds: Vec<OwnedFd>, function: &mut Function) -> Outcome {
    let IrqSet { flags, kind, start, count, .. } = IrqSet::decode(body).map_err(invalid)?;
    if !flags.has(IrqSetFlags::TRIGGER) {
        // Masks are kept by the client, in the tables that it emulates.
        return Ok(Vec::new());
    }
    match () {
        () if flags.has(IrqSetFlags::DATA_EVENTFD) => function.interrupts.set(kind, start, count, fds)?,
        () if flags.has(IrqSetFlags::DATA_NONE) && count == 0 => function.interrupts.disable(kind),
        () if flags.has(IrqSetFlags::DATA_NONE) => function.interrupts.trigger(kind, start, count),
        () => return Err(Errno::INVAL),
    }
    Ok(Vec::new())
}

/// Checks an access against the region's length.
fn check_access(access: &RegionAccess) -> Result<(), Errno> {
    let length = Function::region_bytes(access.region);
    let end = access.offset.checked_add(access.count.into()).filter(|end| *end <= length);
    end.map(drop).ok_or(Errno::INVAL)
}

fn read_region(body: &[u8], function: &mut Function) -> Outcome {
    let access = RegionAccess::decode(body).map_err(invalid)?;
    check_access(&access)?;
    let mut answer = vec![0; RegionAccess::LEN + access.count as usize];
    let (head, data) = answer.split_at_mut(RegionAccess::LEN);
    head.copy_from_slice(&access.encode());
    function.read(access.region, access.offset, data);
    Ok(answer)
}

fn write_region(body: &[u8], function: &mut Function) -> Outcome {
    let access = RegionAccess::decode(body).map_err(invalid)?;
    check_access(&access)?;
    let data = body.get(RegionAccess::LEN..).and_then(|data| data.get(..access.count as usize));
    function.write(access.region, access.offset, data.ok_or(Errno::INVAL)?);
    Ok(access.encode().to_vec())
}

fn write_regions(body: &[u8], function: &mut Function) -> Outcome {
    for write in WriteMulti::decode(body).map_err(invalid)? {
        let write = write.map_err(invalid)?;
        check_access(&write.access)?;
        function.write(write.access.region, write.access.offset, write.bytes());
    }
    Ok(Vec::new())
}
