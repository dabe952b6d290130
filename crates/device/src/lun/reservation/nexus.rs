//! The I_T nexus that a reservation belongs to.

/// An I_T nexus: an initiator port, as seen from the one target port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nexus(pub u8);

impl Nexus {
    /// The host behind the USB port, the only one there is.
    pub const HOST: Self = Self(0);
}
