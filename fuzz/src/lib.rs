//! What the fuzz targets share: the round trip of a wire type, and a host that plays scripts on a drive.
//!
//! A round trip: any bytes decode to a value or are refused; a value is printed, encoded, and decoded again to the
//! same value. Bytes need not come back as they were (reserved bits are dropped), values must.

mod host;

pub use host::{Host, Kind};

/// The round trip of types that encode to an array, or that write to a slice behind leading arguments:
/// `round_trip!(bytes: CommandIu; SenseIu => out; VpdPage => peripheral, out)`.
#[macro_export]
macro_rules! round_trip {
    ($bytes:expr; $( $kind:ty $( => $out:ident $( ( $( $argument:expr ),+ ) )? )? );+ $(;)?) => {
        $( $crate::round_trip!(@one $bytes, $kind $(, $out $( ( $( $argument ),+ ) )? )?); )+
    };
    (@one $bytes:expr, $kind:ty) => {
        if let Ok(value) = <$kind>::decode($bytes) {
            assert_eq!(<$kind>::decode(&value.encode()), Ok(value));
        }
    };
    (@one $bytes:expr, $kind:ty, $out:ident $( ( $( $argument:expr ),+ ) )?) => {
        if let Ok(value) = <$kind>::decode($bytes) {
            let written = value.encode($( $( $argument, )+ )? &mut $out[..]).expect("there is room for it");
            assert_eq!(<$kind>::decode(&$out[..written]), Ok(value));
        }
    };
}

/// The round trip of log pages, each under its code, into that buffer:
/// `log_round_trip!(bytes, out; Temperature: TemperatureLog)`.
#[macro_export]
macro_rules! log_round_trip {
    ($bytes:expr, $out:ident; $( $code:ident : $kind:ty );+ $(;)?) => { $(
        if let Ok(log) = <$kind>::decode($bytes) {
            let code = ::wire::scsi::log::LogPageCode::$code;
            let mut writer = ::wire::scsi::log::LogWriter::new(code, 0, 0, &mut $out).expect("there is room for it");
            log.encode(&mut writer).expect("there is room for it");
            let written = writer.finish().expect("it is shorter than a page may be");
            assert_eq!(<$kind>::decode(&$out[..written]), Ok(log));
        }
    )+ };
}

/// Decodes and prints, for types whose encoder takes something else than the value.
#[macro_export]
macro_rules! decodes {
    ($bytes:expr; $( $kind:ty );+ $(;)?) => {
        $( let _ = <$kind>::decode($bytes).map(|value| format!("{value:?}")); )+
    };
}

/// Room for the longest value that the fuzzer's bytes can decode to.
pub const ROOM: usize = 70_000;
