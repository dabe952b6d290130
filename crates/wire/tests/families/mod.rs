//! Properties that every family of wire types has for any bytes. The fuzz targets and the property tests check the
//! same ones, each with its own bytes.
//!
//! A round trip: any bytes decode to a value or are refused; a value is printed, encoded, and decoded again to the
//! same value. Bytes need not come back as they were (reserved bits are dropped), values must.
#![allow(unreachable_pub, reason = "the fuzz targets include these modules as their own")]

/// The round trip of types that encode to an array, or that write to a slice behind leading arguments:
/// `round_trip!(bytes: CommandIu; SenseIu => out; VpdPage => peripheral, out)`.
macro_rules! round_trip {
    ($bytes:expr; $( $kind:ty $( => $out:ident $( ( $( $argument:expr ),+ ) )? )? );+ $(;)?) => {
        $( round_trip!(@one $bytes, $kind $(, $out $( ( $( $argument ),+ ) )? )?); )+
    };
    (@one $bytes:expr, $kind:ty) => {
        if let Ok(value) = <$kind>::decode($bytes) {
            let _ = value.to_string();
            assert_eq!(<$kind>::decode(&value.encode()), Ok(value));
        }
    };
    (@one $bytes:expr, $kind:ty, $out:ident $( ( $( $argument:expr ),+ ) )?) => {
        if let Ok(value) = <$kind>::decode($bytes) {
            let _ = value.to_string();
            let written = value.encode($( $( $argument, )+ )? &mut $out[..]).expect("there is room for it");
            assert_eq!(<$kind>::decode(&$out[..written]), Ok(value));
        }
    };
}

/// The round trip of log pages, each under its code, into that buffer:
/// `log_round_trip!(bytes, out; Temperature: TemperatureLog)`.
macro_rules! log_round_trip {
    ($bytes:expr, $out:ident; $( $code:ident : $kind:ty );+ $(;)?) => { $(
        if let Ok(log) = <$kind>::decode($bytes) {
            let _ = log.to_string();
            let mut writer = LogWriter::new(LogPageCode::$code, 0, 0, &mut $out).expect("there is room for it");
            log.encode(&mut writer).expect("there is room for it");
            let written = writer.finish().expect("it is shorter than a page may be");
            assert_eq!(<$kind>::decode(&$out[..written]), Ok(log));
        }
    )+ };
}

pub mod ata;
pub mod bot;
pub mod nbd;
pub mod scsi;
pub mod uas;
pub mod usb;
pub mod usbredir;
pub mod vfio_user;
pub mod xhci;

/// Room for the longest value that the bytes of a test can decode to.
const ROOM: usize = 70_000;
