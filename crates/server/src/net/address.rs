//! The address that a drive is served at: `unix:PATH` or `tcp:HOST:PORT`.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// `HOST:PORT`; an IPv6 address is in brackets.
    Tcp(String),
}

/// A text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", place)) if is_host_and_port(place) => Ok(Self::Tcp(place.into())),
            _ => Err(AddressError(text.into())),
        }
    }
}

fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    !host.is_empty() && (is_bracketed || !host.contains(':')) && port.parse::<u16>().is_ok()
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(place) => write!(f, "tcp:{place}"),
        }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid address \"{}\": use unix:PATH or tcp:HOST:PORT", self.0)
    }
}

impl Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_are_written() {
        for text in ["unix:/run/drive", "unix:drive:1", "tcp:localhost:4000", "tcp:[::1]:0"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_invalid_address_is_refused_with_the_valid_forms() {
        for text in ["", "unix:", "tcp:", "tcp:host", "tcp:host:70000", "tcp:::1:5", "/run/drive", "udp:a:1"]
        {
            let error = text.parse::<Address>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("invalid address \"{text}\": use unix:PATH or tcp:HOST:PORT")
            );
        }
    }
}
