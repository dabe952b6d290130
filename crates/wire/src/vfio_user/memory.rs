//! DMA_MAP, DMA_UNMAP, DMA_READ and DMA_WRITE: memory of the guest (vfio-user.rst).

use super::Command;

register_bits! {
    /// How the device may access memory.
    pub struct DmaFlags: u32 {
        /// It may read.
        READ = 0x01 => "read",
        /// It may write.
        WRITE = 0x02 => "write",
    }
}

register_bits! {
    /// Options of an unmap request.
    pub struct UnmapFlags: u32 {
        /// The client wants to know which pages were written.
        GET_DIRTY_PAGES = 0x01 => "dirty pages",
        /// All memory; address and size are 0.
        ALL = 0x02 => "all",
    }
}

fixed_layout! {
    /// Memory that the device may access. A descriptor beside the message can be mapped; without one the server asks by
    /// messages.
    pub struct DmaMap is Command::DmaMap => {
        /// Bytes of this structure.
        size: u32 as u32,
        /// How the device may access it.
        flags: DmaFlags as u32,
        /// Where it begins in the file of the descriptor.
        offset: u64 as u64,
        /// Where it begins for the device.
        address: u64 as u64,
        /// Its length.
        length: u64 as u64,
    }
}

fixed_layout! {
    /// Memory that the device may access no longer. The reply repeats it.
    pub struct DmaUnmap is Command::DmaUnmap => {
        /// Bytes of this structure.
        size: u32 as u32,
        /// Options of the request.
        flags: UnmapFlags as u32,
        /// Where it begins for the device.
        address: u64 as u64,
        /// Its length.
        length: u64 as u64,
    }
}

fixed_layout! {
    /// An access to memory by a message of the server; data follow a write and the reply to a read.
    ///
    /// vfio-user.rst has eight bytes for the count. QEMU reads four, and begins the data there: this server has no use for
    /// either.
    pub struct DmaAccess is Command::DmaRead => {
        /// Where it begins for the device.
        address: u64 as u64,
        /// Bytes.
        count: u64 as u64,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_map_has_two_addresses() {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&[32, 0, 0, 0, 3, 0, 0, 0]);
        bytes[10] = 0x0c;
        bytes[18] = 0x10;
        bytes[27] = 0x20;
        let map = DmaMap::decode(&bytes).unwrap();
        assert_eq!((map.offset, map.address, map.length), (0xc_0000, 0x10_0000, 0x2000_0000));
        assert_eq!(map.encode(), bytes);
        let line = "DMA_MAP, size 32, flags read write, offset 786432, address 1048576, length 536870912";
        assert_eq!(map.to_string(), line);
        assert!(DmaMap::decode(&bytes[..31]).is_err());
    }

    #[test]
    fn an_unmap_may_mean_all() {
        let mut bytes = [0; 24];
        (bytes[0], bytes[4]) = (24, 2);
        let unmap = DmaUnmap::decode(&bytes).unwrap();
        assert!(unmap.flags.has(UnmapFlags::ALL));
        assert_eq!(unmap.encode(), bytes);
    }

    #[test]
    fn an_access_has_a_count() {
        let bytes = [0, 0x10, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0];
        let access = DmaAccess::decode(&bytes).unwrap();
        assert_eq!((access.address, access.count), (0x1_0000_1000, 512));
        assert_eq!(access.encode(), bytes);
    }
}
