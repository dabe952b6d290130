//! Class, subclass and protocol of a device or an interface, always together (USB-IF class codes).

use core::fmt;

/// The three codes by which a driver is chosen. Open: any three bytes are a class code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassCode {
    /// Class.
    pub class: u8,
    /// Subclass; its meaning depends on the class.
    pub subclass: u8,
    /// Protocol; its meaning depends on both.
    pub protocol: u8,
}

impl ClassCode {
    /// Of a device: ask the interfaces.
    pub const PER_INTERFACE: Self = Self::new(0x00, 0x00, 0x00);
    /// Mass storage, SCSI transparent command set, Bulk-Only Transport.
    pub const BOT: Self = Self::new(0x08, 0x06, 0x50);
    /// UFI floppy drive over Control/Bulk/Interrupt, with completion by interrupt.
    pub const CBI_UFI: Self = Self::new(0x08, 0x04, 0x00);
    /// UFI floppy drive over Control/Bulk, without it.
    pub const CB_UFI: Self = Self::new(0x08, 0x04, 0x01);
    /// Mass storage, SCSI transparent command set, USB Attached SCSI.
    pub const UAS: Self = Self::new(0x08, 0x06, 0x62);

    /// A hub of full speed, as an interface; of SuperSpeed as well.
    pub const HUB: Self = Self::new(0x09, 0x00, 0x00);
    /// A hub of SuperSpeed, as a device.
    pub const HUB_SUPER_SPEED: Self = Self::new(0x09, 0x00, 0x03);
    /// A hub of high speed with one translator, as a device.
    pub const HUB_ONE_TRANSLATOR: Self = Self::new(0x09, 0x00, 0x01);
    /// A hub of high speed with a translator for each port, as a device.
    pub const HUB_TRANSLATORS: Self = Self::new(0x09, 0x00, 0x02);

    /// The three codes in the order in which they are on the wire.
    pub const fn new(class: u8, subclass: u8, protocol: u8) -> Self {
        Self { class, subclass, protocol }
    }
}

impl fmt::Display for ClassCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, subclass, protocol } = self;
        write!(f, "{class:02x}/{subclass:02x}/{protocol:02x}")?;
        match *self {
            Self::BOT => f.write_str(" (BOT)"),
            Self::UAS => f.write_str(" (UAS)"),
            Self::CBI_UFI => f.write_str(" (CBI)"),
            Self::CB_UFI => f.write_str(" (CB)"),
            _ if self.class == Self::HUB.class => f.write_str(" (hub)"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn mass_storage_transports_are_named() {
        assert_eq!(ClassCode::new(8, 6, 80).to_string(), "08/06/50 (BOT)");
        assert_eq!(ClassCode::new(8, 6, 98).to_string(), "08/06/62 (UAS)");
        assert_eq!(ClassCode::new(8, 4, 0).to_string(), "08/04/00 (CBI)");
        assert_eq!(ClassCode::new(8, 4, 1).to_string(), "08/04/01 (CB)");
        assert_eq!(ClassCode::new(0xff, 0, 1).to_string(), "ff/00/01");
    }
}
