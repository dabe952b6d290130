//! Arguments of VFIO's ioctls, as `include/uapi/linux/vfio.h` lays them out.
//!
//! Each argument begins with its own length, so that it can grow; the numbers of the ioctls say
//! none. Left out: whatever follows by way of capability chains, and everything about migration.

use linux_raw_sys::ioctl as number;
use rustix::ioctl::{Opcode, opcode};

/// The letter of VFIO's ioctls.
const GROUP: u8 = b';';

/// VFIO_API_VERSION.
pub(super) const API_VERSION: u32 = 0;

/// VFIO_TYPE1v2_IOMMU: mappings are cancelled as they were made.
pub(super) const TYPE1_V2: u32 = 3;

/// VFIO_GROUP_FLAGS_VIABLE: every device of the group is free for a process.
pub(super) const GROUP_VIABLE: u32 = 0x01;

/// VFIO_DEVICE_FLAGS_RESET.
pub(super) const DEVICE_RESETS: u32 = 0x01;

/// VFIO_REGION_INFO_FLAG_MMAP.
pub(super) const REGION_MAPS: u32 = 0x04;

/// VFIO_IRQ_INFO_EVENTFD.
pub(super) const IRQ_EVENTFD: u32 = 0x01;

/// VFIO_IRQ_SET_DATA_EVENTFD and VFIO_IRQ_SET_ACTION_TRIGGER.
pub(super) const SET_TRIGGER_EVENTFD: u32 = 0x24;

/// VFIO_DMA_MAP_FLAG_READ and VFIO_DMA_MAP_FLAG_WRITE.
pub(super) const MAP_READ_WRITE: u32 = 0x03;

/// `struct vfio_group_status`.
#[repr(C)]
pub(super) struct GroupStatus {
    pub(super) bytes: u32,
    pub(super) flags: u32,
}

/// `struct vfio_device_info`, without what follows its first version.
#[repr(C)]
pub(super) struct DeviceInfo {
    pub(super) bytes: u32,
    pub(super) flags: u32,
    pub(super) regions: u32,
    pub(super) irqs: u32,
}

/// `struct vfio_region_info`.
#[repr(C)]
pub(super) struct RegionInfo {
    pub(super) bytes: u32,
    pub(super) flags: u32,
    pub(super) index: u32,
    pub(super) capability_offset: u32,
    pub(super) size: u64,
    pub(super) offset: u64,
}

/// `struct vfio_irq_info`.
#[repr(C)]
pub(super) struct IrqInfo {
    pub(super) bytes: u32,
    pub(super) flags: u32,
    pub(super) index: u32,
    pub(super) count: u32,
}

/// `struct vfio_irq_set` with one event descriptor.
#[repr(C)]
pub(super) struct IrqSet {
    pub(super) bytes: u32,
    pub(super) flags: u32,
    pub(super) index: u32,
    pub(super) start: u32,
    pub(super) count: u32,
    pub(super) eventfd: i32,
}

/// `struct vfio_iommu_type1_dma_map`.
#[repr(C)]
pub(super) struct MapDma {
    pub(super) bytes: u32,
    pub(super) flags: u32,
    pub(super) address: u64,
    pub(super) bus_address: u64,
    pub(super) size: u64,
}

/// `struct vfio_iommu_type1_dma_unmap`.
#[repr(C)]
pub(super) struct UnmapDma {
    pub(super) bytes: u32,
    pub(super) flags: u32,
    pub(super) bus_address: u64,
    pub(super) size: u64,
}

/// The number of an ioctl, compared with the kernel's headers when this is compiled.
const fn agreed(kernel: u32, serial: u8) -> Opcode {
    let ours = opcode::none(GROUP, serial);
    assert!(kernel as Opcode == ours, "the kernel has another number");
    ours
}

pub(super) const GET_API_VERSION: Opcode = agreed(number::VFIO_GET_API_VERSION, 100);
pub(super) const CHECK_EXTENSION: Opcode = agreed(number::VFIO_CHECK_EXTENSION, 101);
pub(super) const SET_IOMMU: Opcode = agreed(number::VFIO_SET_IOMMU, 102);
pub(super) const GROUP_GET_STATUS: Opcode = agreed(number::VFIO_GROUP_GET_STATUS, 103);
pub(super) const GROUP_SET_CONTAINER: Opcode = agreed(number::VFIO_GROUP_SET_CONTAINER, 104);
pub(super) const GROUP_GET_DEVICE: Opcode = agreed(number::VFIO_GROUP_GET_DEVICE_FD, 106);
pub(super) const DEVICE_GET_INFO: Opcode = agreed(number::VFIO_DEVICE_GET_INFO, 107);
pub(super) const DEVICE_GET_REGION: Opcode = agreed(number::VFIO_DEVICE_GET_REGION_INFO, 108);
pub(super) const DEVICE_GET_IRQ: Opcode = agreed(number::VFIO_DEVICE_GET_IRQ_INFO, 109);
pub(super) const DEVICE_SET_IRQS: Opcode = agreed(number::VFIO_DEVICE_SET_IRQS, 110);
pub(super) const DEVICE_RESET: Opcode = agreed(number::VFIO_DEVICE_RESET, 111);
pub(super) const MAP_DMA: Opcode = agreed(number::VFIO_IOMMU_MAP_DMA, 113);
pub(super) const UNMAP_DMA: Opcode = agreed(number::VFIO_IOMMU_UNMAP_DMA, 114);
