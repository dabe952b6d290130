//! Memory of the guest: what the client has mapped, by the address at which the device sees it.
//!
//! Memory without a descriptor is known and cannot be accessed: ROMs, and RAM of other devices. Left out: access to it by
//! messages.
//!
//! Always true: regions do not overlap, and there are no more than [`REGIONS_MAX`]; an access outside of them is a fault.

use super::mapping::Mapping;
use super::registers::SharedRegisters;
use rustix::fs::{FileType, fstat, fstatfs};
use rustix::io::Errno;
use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use wire::vfio_user::{DmaFlags, DmaMap, DmaUnmap, UnmapFlags};
use wire::xhci::TRB_BYTES;
use xhci_controller::{Fault, GuestMemory};

/// Regions of a client at once: QEMU has some twenty.
pub(super) const REGIONS_MAX: usize = 256;

/// File systems whose pages are in memory, so that no access waits for anybody: tmpfs (memfd, /dev/shm), hugetlbfs and
/// ramfs (linux/magic.h).
const MEMORY_FILE_SYSTEMS: [u64; 3] = [0x0102_1994, 0x9584_58f6, 0x8584_58f6];

/// Memory that the client has mapped.
#[derive(Debug, Default)]
pub struct MappedMemory {
    /// In order of address.
    regions: Vec<Region>,
    /// The region of the last access.
    recent: Cell<usize>,
    /// Registers that the guest maps, if it may.
    pub(super) registers: Option<SharedRegisters>,
}

#[derive(Debug)]
struct Region {
    address: u64,
    length: u64,
    is_writable: bool,
    /// `None` if it came without a descriptor.
    mapping: Option<Mapping>,
}

/// Bytes in a region, and where.
struct Found<'a> {
    region: &'a Region,
    mapping: &'a Mapping,
    at: usize,
    /// Bytes from there to the end of the region.
    left: usize,
}

impl MappedMemory {
    /// Adds memory.
    ///
    /// # Errors
    /// EINVAL for a range that overlaps another, is empty or wraps around, or lies beyond the end of its file; ENOTSUP for a
    /// file whose pages are not in memory; ENOSPC for too many; what mmap said.
    pub fn map(&mut self, map: &DmaMap, file: Option<OwnedFd>) -> Result<(), Errno> {
        let DmaMap { flags, offset, address, length, .. } = *map;
        let end = address.checked_add(length).filter(|end| *end > address).ok_or(Errno::INVAL)?;
        let place = self.regions.partition_point(|region| region.address < address);
        let is_before = place == 0 || self.regions[place - 1].end() <= address;
        let is_behind = self.regions.get(place).is_none_or(|region| region.address >= end);
        if !is_before || !is_behind {
            return Err(Errno::INVAL);
        }
        if self.regions.len() >= REGIONS_MAX {
            return Err(Errno::NOSPC);
        }
        let is_writable = flags.has(DmaFlags::WRITE);
        let mapping = file.map(|file| {
            check_file(&file, offset, length)?;
            let bytes = usize::try_from(length).map_err(|_| Errno::NOMEM)?;
            Mapping::new(file.as_fd(), offset, bytes, is_writable)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))
        });
        let mapping = mapping.transpose()?;
        self.regions.insert(place, Region { address, length, is_writable, mapping });
        Ok(())
    }

    /// Removes the memory of a range, or all. After it nothing of it is accessed.
    ///
    /// # Errors
    /// EINVAL for a range that cuts a region.
    pub fn unmap(&mut self, unmap: &DmaUnmap) -> Result<(), Errno> {
        if unmap.flags.has(UnmapFlags::ALL) {
            self.clear();
            return Ok(());
        }
        let start = unmap.address;
        let end = start.checked_add(unmap.length).ok_or(Errno::INVAL)?;
        let is_within = |region: &Region| region.address >= start && region.end() <= end;
        let is_cut = |region: &Region| region.address < end && region.end() > start && !is_within(region);
        if self.regions.iter().any(is_cut) {
            return Err(Errno::INVAL);
        }
        self.regions.retain(|region| !is_within(region));
        Ok(())
    }

    /// Removes everything of the client's.
    pub(super) fn clear(&mut self) {
        self.regions.clear();
    }

    /// Returns whether the file of any region has become too short.
    pub(super) fn is_lost(&self) -> bool {
        self.regions.iter().filter_map(|region| region.mapping.as_ref()).any(Mapping::is_lost)
    }

    #[inline]
    fn find(&self, address: u64) -> Option<Found<'_>> {
        let recent = self.regions.get(self.recent.get()).filter(|region| region.has(address));
        let region = match recent {
            Some(region) => region,
            None => {
                let place =
                    self.regions.partition_point(|region| region.address <= address).checked_sub(1)?;
                self.recent.set(place);
                self.regions.get(place).filter(|region| region.has(address))?
            }
        };
        let at = address - region.address;
        let (at, left) = (usize::try_from(at).ok()?, usize::try_from(region.length - at).ok()?);
        Some(Found { region, mapping: region.mapping.as_ref()?, at, left })
    }

    /// Returns the place of a TRB that lies in one region, on a boundary of words.
    #[inline]
    fn find_trb(&self, address: u64) -> Option<Found<'_>> {
        self.find(address).filter(|found| found.left >= TRB_BYTES && found.at.is_multiple_of(4))
    }
}

impl Region {
    const fn end(&self) -> u64 {
        self.address + self.length
    }

    const fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.length
    }
}

/// Checks that a file is in memory and long enough.
fn check_file(file: &OwnedFd, offset: u64, length: u64) -> Result<(), Errno> {
    let stat = fstat(file)?;
    let end = offset.checked_add(length).ok_or(Errno::INVAL)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || (stat.st_size as u64) < end {
        return Err(Errno::INVAL);
    }
    let kind = fstatfs(file)?.f_type as u64 & u64::from(u32::MAX);
    if MEMORY_FILE_SYSTEMS.contains(&kind) { Ok(()) } else { Err(Errno::NOTSUP) }
}

impl GuestMemory for MappedMemory {
    fn read_bytes(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        let (mut at, mut rest) = (address, into);
        while !rest.is_empty() {
            let found = self.find(at).ok_or(Fault { address: at })?;
            let (now, later) = rest.split_at_mut(found.left.min(rest.len()));
            if !found.mapping.read(found.at, now) {
                return Err(Fault { address: at });
            }
            (at, rest) = (at.wrapping_add(now.len() as u64), later);
        }
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let (mut at, mut rest) = (address, bytes);
        while !rest.is_empty() {
            let found =
                self.find(at).filter(|found| found.region.is_writable).ok_or(Fault { address: at })?;
            let (now, later) = rest.split_at(found.left.min(rest.len()));
            if !found.mapping.write(found.at, now) {
                return Err(Fault { address: at });
            }
            (at, rest) = (at.wrapping_add(now.len() as u64), later);
        }
        Ok(())
    }

    #[inline]
    fn read_trb(&self, address: u64) -> Result<[u8; TRB_BYTES], Fault> {
        let Some(found) = self.find_trb(address) else { return self.read(address) };
        let fault = Fault { address };
        let control = found.mapping.load(found.at + 12).ok_or(fault)?;
        let mut trb = [0; TRB_BYTES];
        let (before, last) = trb.split_at_mut(12);
        if !found.mapping.read(found.at, before) {
            return Err(fault);
        }
        last.copy_from_slice(&control.to_le_bytes());
        Ok(trb)
    }

    #[inline]
    fn write_trb(&mut self, address: u64, trb: [u8; TRB_BYTES]) -> Result<(), Fault> {
        let Some(found) = self.find_trb(address).filter(|found| found.region.is_writable) else {
            return self.write(address, &trb);
        };
        let (before, last) = trb.split_at(12);
        let control = last.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let is_written = found.mapping.write(found.at, before);
        is_written.then(|| found.mapping.store(found.at + 12, control)).flatten().ok_or(Fault { address })
    }

    #[inline]
    fn take_doorbell(&self, slot: u8) -> Option<u32> {
        self.registers.as_ref()?.take_doorbell(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    fn file(bytes: u64) -> OwnedFd {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes).unwrap();
        file
    }

    fn range(address: u64, length: u64) -> DmaMap {
        DmaMap { size: 32, flags: DmaFlags::READ.with(DmaFlags::WRITE), offset: 0, address, length }
    }

    fn gone(address: u64, length: u64) -> DmaUnmap {
        DmaUnmap { size: 24, flags: UnmapFlags::EMPTY, address, length }
    }

    #[test]
    fn an_access_may_span_regions_that_touch() {
        let mut memory = MappedMemory::default();
        memory.map(&range(0x2000, 0x1000), Some(file(0x1000))).unwrap();
        memory.map(&range(0x1000, 0x1000), Some(file(0x1000))).unwrap();
        memory.write(0x1ffc, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        assert_eq!(memory.read::<8>(0x1ffc), Ok([1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(memory.read::<4>(0x2000), Ok([5, 6, 7, 8]));
        assert_eq!(memory.read::<4>(0x2ffe), Err(Fault { address: 0x3000 }));
        assert_eq!(memory.write(0xfff, &[0]), Err(Fault { address: 0xfff }));
        assert_eq!(memory.read::<2>(u64::MAX), Err(Fault { address: u64::MAX }));
    }

    #[test]
    fn a_trb_is_read_as_it_was_written() {
        let mut memory = MappedMemory::default();
        memory.map(&range(0x1000, 0x1000), Some(file(0x1000))).unwrap();
        let trb = std::array::from_fn(|at| at as u8);
        for address in [0x1000, 0x1ff0, 0x1001] {
            memory.write_trb(address, trb).unwrap();
            assert_eq!(memory.read_trb(address), Ok(trb));
        }
        assert!(memory.read_trb(0x1ff8).is_err());
    }

    #[test]
    fn ranges_that_overlap_wrap_or_exceed_their_file_are_refused() {
        let mut memory = MappedMemory::default();
        memory.map(&range(0x1000, 0x2000), Some(file(0x2000))).unwrap();
        for (address, length) in [(0x2000, 0x1000), (0, 0x1001), (0x1000, 0x1000), (u64::MAX, 2), (0x9000, 0)]
        {
            assert_eq!(
                memory.map(&range(address, length), Some(file(0x2000))),
                Err(Errno::INVAL),
                "{address:#x}"
            );
        }
        assert_eq!(memory.map(&range(0x8000, 0x3000), Some(file(0x2000))), Err(Errno::INVAL));
        let unaligned = DmaMap { offset: 1, ..range(0x8000, 0x1000) };
        assert_eq!(memory.map(&unaligned, Some(file(0x2000))), Err(Errno::INVAL));
        let wrapped = DmaMap { offset: u64::MAX, ..range(0x8000, 0x1000) };
        assert_eq!(memory.map(&wrapped, Some(file(0x2000))), Err(Errno::INVAL));
        let pipe = OwnedFd::from(std::io::pipe().unwrap().0);
        assert_eq!(memory.map(&range(0x8000, 0x1000), Some(pipe)), Err(Errno::INVAL));
    }

    #[test]
    fn what_is_unmapped_is_not_accessed_any_more() {
        let mut memory = MappedMemory::default();
        for address in [0, 0x1000, 0x4000] {
            memory.map(&range(address, 0x1000), Some(file(0x1000))).unwrap();
        }
        assert_eq!(memory.unmap(&gone(0x800, 0x1000)), Err(Errno::INVAL));
        memory.unmap(&gone(0, 0x2000)).unwrap();
        assert!(memory.read::<1>(0).is_err() && memory.read::<1>(0x1fff).is_err());
        assert!(memory.read::<1>(0x4000).is_ok());
        memory.unmap(&DmaUnmap { flags: UnmapFlags::ALL, ..gone(0, 0) }).unwrap();
        assert!(memory.read::<1>(0x4000).is_err());
    }

    #[test]
    fn memory_without_a_descriptor_or_permission_is_a_fault() {
        let mut memory = MappedMemory::default();
        memory.map(&range(0, 0x1000), None).unwrap();
        let read_only = DmaMap { flags: DmaFlags::READ, ..range(0x1000, 0x1000) };
        memory.map(&read_only, Some(file(0x1000))).unwrap();
        assert_eq!(memory.read::<1>(0), Err(Fault { address: 0 }));
        assert_eq!(memory.read::<1>(0x1000), Ok([0]));
        assert_eq!(memory.write(0x1000, &[1]), Err(Fault { address: 0x1000 }));
        assert!(memory.write_trb(0x1000, [0; 16]).is_err());
    }

    #[test]
    fn regions_are_limited() {
        let mut memory = MappedMemory::default();
        for number in 0..REGIONS_MAX as u64 {
            memory.map(&range(number << 12, 0x1000), None).unwrap();
        }
        assert_eq!(memory.map(&range(1 << 40, 0x1000), None), Err(Errno::NOSPC));
    }
}
