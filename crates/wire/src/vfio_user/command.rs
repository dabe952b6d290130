//! Codes of commands (vfio-user.rst, "Message types").

code! {
    /// Commands of messages. A reply repeats the code.
    pub enum Command: u16 {
        /// Negotiates version and capabilities; the first message.
        Version = 1 => "VERSION",
        /// Gives the server access to memory of the guest.
        DmaMap = 2 => "DMA_MAP",
        /// Takes access to memory away.
        DmaUnmap = 3 => "DMA_UNMAP",
        /// Asks what the device is.
        DeviceInfo = 4 => "DEVICE_GET_INFO",
        /// Asks for size and access of a region.
        RegionInfo = 5 => "DEVICE_GET_REGION_INFO",
        /// Asks for eventfds of a region's registers.
        RegionIoFds = 6 => "DEVICE_GET_REGION_IO_FDS",
        /// Asks for the vectors of an interrupt type.
        IrqInfo = 7 => "DEVICE_GET_IRQ_INFO",
        /// Sets eventfds of vectors, masks or triggers them.
        IrqSet = 8 => "DEVICE_SET_IRQS",
        /// Reads a region.
        RegionRead = 9 => "REGION_READ",
        /// Writes a region.
        RegionWrite = 10 => "REGION_WRITE",
        /// From the server: reads memory of the guest that it cannot map.
        DmaRead = 11 => "DMA_READ",
        /// From the server: writes memory of the guest that it cannot map.
        DmaWrite = 12 => "DMA_WRITE",
        /// Resets the device.
        DeviceReset = 13 => "DEVICE_RESET",
        /// Migration: pages written by the device.
        DirtyPages = 14 => "DIRTY_PAGES",
        /// Several writes of up to eight bytes, without a reply.
        RegionWriteMulti = 15 => "REGION_WRITE_MULTI",
        /// Migration: features of the device.
        DeviceFeature = 16 => "DEVICE_FEATURE",
    }
}
