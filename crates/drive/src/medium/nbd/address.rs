//! Addresses of exports: `nbd://HOST:PORT/EXPORT` and `nbd+unix:///EXPORT?socket=PATH` (doc/uri.md of NetworkBlockDevice/nbd).
//!
//! Left out: TLS (`nbds:`), vsock, user names.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;
use wire::Legible;
use wire::nbd::STRING_LEN_MAX;

/// The port of NBD (IANA).
const PORT: u16 = 10809;

/// An export of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdAddress {
    /// Where the server listens.
    pub server: NbdServer,
    /// Name of the export; empty: the server's default.
    pub export: Vec<u8>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdServer {
    /// A host by name or address, and a port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Why a text is not the address of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAnNbdAddress {
    /// It begins with another scheme.
    Scheme(String),
    /// It asks for TLS.
    Tls,
    /// There is no host.
    NoHost,
    /// No port follows the colon.
    Port(String),
    /// `nbd+unix` without `socket=PATH`.
    NoSocket,
    /// A parameter that is not known.
    Parameter(String),
    /// A per cent sign without two hexadecimal digits.
    Escape,
    /// `nbd+unix` with a host, as in `nbd+unix://run/nbd.sock`.
    HostOfSocket(String),
    /// The name of the export is longer than the protocol allows.
    LongName,
}

impl NbdAddress {
    /// Whether a name on a command line is meant as an address: it has a scheme, and is no path.
    pub fn is_meant_by(text: &str) -> bool {
        let Some((scheme, rest)) = text.split_once(':') else { return false };
        let is_nbd = scheme.starts_with("nbd");
        let is_scheme = scheme.len() > 1
            && scheme.chars().all(|sign| sign.is_ascii_alphanumeric() || "+-.".contains(sign));
        is_scheme && rest.starts_with("//") || is_nbd && rest.starts_with('/')
    }
}

impl FromStr for NbdAddress {
    type Err = NotAnNbdAddress;

    fn from_str(text: &str) -> Result<Self, NotAnNbdAddress> {
        let (scheme, rest) = text.split_once(':').ok_or_else(|| NotAnNbdAddress::Scheme(String::new()))?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
            None => ("", rest.strip_prefix('/').unwrap_or(rest)),
        };
        let export = unescaped(path)?;
        if export.len() > STRING_LEN_MAX {
            return Err(NotAnNbdAddress::LongName);
        }
        let mut socket = None;
        for parameter in query.into_iter().flat_map(|query| query.split('&')) {
            match parameter.split_once('=') {
                Some(("socket", path)) if !path.is_empty() => socket = Some(unescaped(path)?),
                Some(("socket", _)) => {}
                _ => return Err(NotAnNbdAddress::Parameter(parameter.into())),
            }
        }
        let server = match scheme {
            "nbd" if socket.is_some() => return Err(NotAnNbdAddress::Parameter("socket".into())),
            "nbd" => host_and_port(authority)?,
            "nbd+unix" if !authority.is_empty() => {
                return Err(NotAnNbdAddress::HostOfSocket(authority.into()));
            }
            "nbd+unix" => {
                let path = socket.ok_or(NotAnNbdAddress::NoSocket)?;
                NbdServer::Unix(OsString::from_vec(path).into())
            }
            "nbds" | "nbds+unix" | "nbds+vsock" => return Err(NotAnNbdAddress::Tls),
            other => return Err(NotAnNbdAddress::Scheme(other.into())),
        };
        Ok(Self { server, export })
    }
}

fn host_and_port(authority: &str) -> Result<NbdServer, NotAnNbdAddress> {
    let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[after_bracket..].rfind(':') {
        Some(at) => (&authority[..after_bracket + at], &authority[after_bracket + at + 1..]),
        None => (authority, ""),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err(NotAnNbdAddress::NoHost);
    }
    let port = match port {
        "" => PORT,
        port => {
            port.parse().ok().filter(|&port| port != 0).ok_or_else(|| NotAnNbdAddress::Port(port.into()))?
        }
    };
    Ok(NbdServer::Tcp(host.into(), port))
}

/// Resolves percent signs (RFC 3986 clause 2.1).
fn unescaped(text: &str) -> Result<Vec<u8>, NotAnNbdAddress> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || (bytes.next()? as char).to_digit(16);
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(NotAnNbdAddress::Escape) };
        out.push((high * 16 + low) as u8);
    }
    Ok(out)
}

/// Writes bytes as they stand in an address.
fn write_escaped(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            write!(f, "{}", byte as char)?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

impl fmt::Display for NbdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            NbdServer::Tcp(host, port) if host.contains(':') => write!(f, "nbd://[{host}]:{port}/")?,
            NbdServer::Tcp(host, port) => write!(f, "nbd://{host}:{port}/")?,
            NbdServer::Unix(_) => f.write_str("nbd+unix:///")?,
        }
        write_escaped(f, &self.export)?;
        match &self.server {
            NbdServer::Tcp(..) => Ok(()),
            NbdServer::Unix(path) => {
                f.write_str("?socket=")?;
                write_escaped(f, path.as_os_str().as_bytes())
            }
        }
    }
}

impl fmt::Display for NotAnNbdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let legible = |text: &str| Legible(text.as_bytes()).to_string();
        match self {
            Self::Scheme(scheme) => write!(
                f,
                "unknown scheme \"{}\"; use nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH",
                legible(scheme)
            ),
            Self::Tls => f.write_str(
                "TLS is not supported; use nbd:// over a tunnel (ssh -L, stunnel), or nbd+unix://",
            ),
            Self::NoHost => f.write_str("the host is missing; use nbd://HOST:PORT/EXPORT"),
            Self::Port(port) => write!(f, "invalid port \"{}\"; use 1 to 65535", legible(port)),
            Self::NoSocket => f.write_str("the socket is missing; use nbd+unix:///EXPORT?socket=PATH"),
            Self::Parameter(name) => {
                write!(f, "unknown parameter \"{}\"; nbd+unix has socket=PATH, nbd has none", legible(name))
            }
            Self::Escape => f.write_str("a per cent sign needs two hexadecimal digits; write %25 for itself"),
            Self::HostOfSocket(host) => write!(
                f,
                "nbd+unix has no host, and \"{}\" stands for one; use three slashes: nbd+unix:///EXPORT?socket=PATH",
                legible(host)
            ),
            Self::LongName => {
                write!(f, "the name of the export is longer than {STRING_LEN_MAX} bytes")
            }
        }
    }
}

impl std::error::Error for NotAnNbdAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<NbdAddress, NotAnNbdAddress> {
        text.parse()
    }

    #[test]
    fn addresses_read_as_they_are_written() {
        for (text, server, export) in [
            ("nbd://server:10810/disk", NbdServer::Tcp("server".into(), 10810), "disk"),
            ("nbd://[::1]:10809/", NbdServer::Tcp("::1".into(), 10809), ""),
            ("nbd+unix:///a/b%20c?socket=/run/x%3Fy", NbdServer::Unix("/run/x?y".into()), "a/b c"),
        ] {
            let address = parse(text).unwrap();
            assert_eq!((&address.server, &*address.export), (&server, export.as_bytes()), "{text}");
            assert_eq!(address.to_string(), text);
        }
        assert_eq!(parse("nbd://server").unwrap().to_string(), "nbd://server:10809/");
        assert_eq!(parse("nbd+unix:/disk?socket=s").unwrap().to_string(), "nbd+unix:///disk?socket=s");
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        for (text, reason) in [
            ("http://server/disk.img", NotAnNbdAddress::Scheme("http".into())),
            ("nbds://server/disk", NotAnNbdAddress::Tls),
            ("nbd:///disk", NotAnNbdAddress::NoHost),
            ("nbd://server:x/", NotAnNbdAddress::Port("x".into())),
            ("nbd://server:0/", NotAnNbdAddress::Port("0".into())),
            ("nbd+unix:///disk", NotAnNbdAddress::NoSocket),
            ("nbd+unix:///disk?socket=", NotAnNbdAddress::NoSocket),
            ("nbd+unix://run/x?socket=y", NotAnNbdAddress::HostOfSocket("run".into())),
            ("nbd://server/?tls=no", NotAnNbdAddress::Parameter("tls=no".into())),
            ("nbd://server/?socket=x", NotAnNbdAddress::Parameter("socket".into())),
            ("nbd://server/%2", NotAnNbdAddress::Escape),
            ("nbd://server/%zz", NotAnNbdAddress::Escape),
        ] {
            assert_eq!(parse(text), Err(reason), "{text}");
        }
        assert_eq!(parse(&format!("nbd://s/{}", "x".repeat(4097))), Err(NotAnNbdAddress::LongName));
    }

    #[test]
    fn a_path_is_no_address() {
        for (text, is_meant) in [
            ("nbd://server", true),
            ("nbd+unix:///x?socket=y", true),
            ("nbd:/x", true),
            ("http://server/x", true),
            ("disk.img", false),
            ("/srv/a:b//c", false),
            ("./nbd://x", false),
            ("C:/x", false),
        ] {
            assert_eq!(NbdAddress::is_meant_by(text), is_meant, "{text}");
        }
    }
}
