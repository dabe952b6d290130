//! Layouts of little-endian integers that never change: one declaration gives the struct and both directions.

/// Declares a header of fixed layout.
///
/// `fixed_layout! { /// docs  pub struct Name is PacketType::Name => { /// docs  field: Type as wire_int, … } }`
/// lists the fields in wire order, each with the little-endian integer that carries it. The struct gets
/// `KIND`, `LEN`, `decode`, `encode` and `Display`.
macro_rules! fixed_layout {
    (
        $(#[$meta:meta])*
        pub struct $name:ident is $kinds:ident :: $kind:ident => {
            $( $(#[$field_meta:meta])* $field:ident : $ty:ty as $wire:ty ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $ty, )+
        }

        impl $name {
            /// Type of packet or message that this header belongs to.
            pub const KIND: $kinds = $kinds::$kind;
            /// Bytes on the wire.
            pub const LEN: usize = 0 $( + size_of::<$wire>() )+;

            /// Decodes the header; bytes past [`Self::LEN`] are left alone.
            pub fn decode(bytes: &[u8]) -> Result<Self, $crate::DecodeError> {
                let head = bytes
                    .first_chunk::<{ Self::LEN }>()
                    .ok_or($crate::DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
                let mut reader = $crate::Reader::new(head);
                Ok(Self { $( $field: <$wire>::from_le_bytes(reader.array()?).into(), )+ })
            }

            /// The bytes of the header.
            pub fn encode(&self) -> [u8; Self::LEN] {
                let mut bytes = [0; Self::LEN];
                let fields = core::iter::empty()
                    $( .chain(<$wire>::from(self.$field).to_le_bytes()) )+;
                for (place, byte) in bytes.iter_mut().zip(fields) {
                    *place = byte;
                }
                bytes
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}", Self::KIND)?;
                $( write!(f, ", {} {}", stringify!($field), self.$field)?; )+
                Ok(())
            }
        }
    };
}
