//! Registers of single bits: a set whose members have names.

/// Declares a register of bits.
///
/// `register_bits! { /// docs  pub struct Name: u8 { /// docs  READY = 0x40 => "DRDY", … } }` gives a set
/// with `EMPTY`, one constant for each bit, `has`, `with`, `From` both ways (lossless) and `Display`.
macro_rules! register_bits {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $int:ty {
            $( $(#[$bit_meta:meta])* $bit:ident = $value:literal => $text:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name($int);

        impl $name {
            /// No bit.
            pub const EMPTY: Self = Self(0);
            $( $(#[$bit_meta])* pub const $bit: Self = Self($value); )+

            /// Whether all bits of `other` are set.
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// The bits of both.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The bits that are not in `other`.
            #[must_use]
            #[allow(dead_code, reason = "not every register is written back")]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl From<$int> for $name {
            fn from(bits: $int) -> Self {
                Self(bits)
            }
        }

        impl From<$name> for $int {
            fn from(register: $name) -> $int {
                register.0
            }
        }

        impl core::fmt::Display for $name {
            /// The names of the bits that are set, then the bits without a name.
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let (mut rest, mut separator) = (self.0, "");
                $( if rest & $value != 0 {
                    write!(f, "{separator}{}", $text)?;
                    (rest, separator) = (rest & !$value, " ");
                } )+
                match rest {
                    0 if separator.is_empty() => f.write_str("none"),
                    0 => Ok(()),
                    _ => write!(f, "{separator}{rest:#x}"),
                }
            }
        }
    };
}
