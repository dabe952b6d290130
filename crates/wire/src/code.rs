//! Open codes: an enum over a wire integer in which unknown values survive.

/// Declares an open code.
///
/// `code! { /// docs  pub enum Name: u8 { /// docs  Known = 0x01 => "its name", … } }` gives an enum with
/// one more variant `Unknown(u8)`, `From` both ways (lossless), and `Display` (the name, or the value in
/// hexadecimal). `Unknown` never holds a known value when it comes from `From`.
macro_rules! code {
    (
        $(#[$meta:meta])*
        pub enum $name:ident : $int:ty {
            $( $(#[$vmeta:meta])* $variant:ident = $value:literal => $text:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
            /// An unknown value, preserved as received.
            Unknown($int),
        }

        impl From<$int> for $name {
            fn from(value: $int) -> Self {
                match value {
                    $( $value => Self::$variant, )+
                    other => Self::Unknown(other),
                }
            }
        }

        impl From<$name> for $int {
            fn from(code: $name) -> $int {
                match code {
                    $( $name::$variant => $value, )+
                    $name::Unknown(other) => other,
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $( Self::$variant => f.write_str($text), )+
                    Self::Unknown(other) => write!(f, "unknown ({other:#04x})"),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    code! {
        /// A code for the test.
        pub enum Fruit: u8 {
            /// Round.
            Apple = 0x01 => "apple",
            /// Long.
            Banana = 0x10 => "banana",
        }
    }

    #[test]
    fn every_value_survives() {
        for value in 0..=u8::MAX {
            assert_eq!(u8::from(Fruit::from(value)), value);
        }
        assert_eq!(Fruit::from(0x10), Fruit::Banana);
        assert_eq!(Fruit::from(0x02).to_string(), "unknown (0x02)");
    }
}
