//! The listening socket.
//!
//! A Unix socket has mode 0600 before it has a name: the mode of a socket is set while it is not bound, and binding
//! gives the file that mode (unix(7), `unix_bind` of Linux). The umask can only narrow it. A socket that a dead
//! server has left is replaced; one at which somebody listens is not, nor is anything that is no socket.
//!
//! Left out: two servers that start at the same instant over the same dead socket. One of them wins; the other
//! listens at a name that is gone.

use super::Address;
use super::socket::Socket;
use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};
use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, sockopt,
};
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, net};

/// Length of the accept queue. All connections but one will be rejected.
const BACKLOG: i32 = 16;
/// Bytes of a socket's path, without the NUL at its end (unix(7), `sun_path`).
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// The maximum number of bytes that wait in the system for a client at a Unix socket to read them
/// (the system counts twice as many, for its own books). Two answers of 512 KiB go without a wait
/// then; the 208 KiB that are usual take four calls for each, and a waking up for each call.
pub(super) const SEND_BUFFER_BYTES: usize = 1 << 20;
/// How long a TCP peer may be silent before it is asked whether it is there, and how often it is asked.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);

/// Why a server cannot listen on an address.
#[derive(Debug)]
pub enum BindError {
    /// Another server listens on this socket.
    InUse(PathBuf),
    /// There is something else at this path.
    NotASocket(PathBuf),
    /// The address can be reached from other machines, which was not allowed.
    NotLoopback(SocketAddr),
    /// The system returned an error.
    Io(Address, io::Error),
}

/// A socket that listens. Its name in the file system goes when it is dropped.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener, SocketFile),
    Tcp(TcpListener),
}

/// The name of a Unix socket.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode: what is there later may be somebody else's.
    identity: (u64, u64),
}

impl Listener {
    /// Listens at `address`. TCP outside of loopback needs `allow_remote`.
    pub(crate) fn bind(address: &Address, allow_remote: bool) -> Result<Self, BindError> {
        let failed = |error| BindError::Io(address.clone(), error);
        match address {
            Address::Unix(path) => {
                make_room(path)?;
                let (listener, file) = bind_unix(path).map_err(failed)?;
                Ok(Self::Unix(UnixListener::from_std(listener), file))
            }
            Address::Tcp(place) => {
                let places: Vec<SocketAddr> = place.to_socket_addrs().map_err(failed)?.collect();
                if let Some(remote) = places.iter().find(|place| !place.ip().is_loopback())
                    && !allow_remote
                {
                    return Err(BindError::NotLoopback(*remote));
                }
                let listener = net::TcpListener::bind(&places[..]).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                Ok(Self::Tcp(TcpListener::from_std(listener)))
            }
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Unix(_, file) => Address::Unix(file.path.clone()),
            Self::Tcp(listener) => Address::Tcp(listener.local_addr()?.to_string()),
        })
    }

    /// The next connection, and who it is. One that has gone already is passed over.
    pub(crate) fn accept(&self) -> io::Result<(Socket, String)> {
        loop {
            match self.accept_once() {
                Err(error) if is_passing(&error) => {}
                outcome => return outcome,
            }
        }
    }

    fn accept_once(&self) -> io::Result<(Socket, String)> {
        match self {
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                // The system gives less where it allows less, and what is given is enough to go on.
                let _ = sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES);
                let name = match sockopt::socket_peercred(&stream) {
                    Ok(peer) => format!("process {}", peer.pid.as_raw_nonzero()),
                    Err(_) => "a process".to_owned(),
                };
                Ok((Socket::Unix(stream), name))
            }
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nodelay(true)?;
                // Without it a client whose machine has vanished would hold the drive for ever.
                let (idle, interval, count) = KEEP_ALIVE;
                sockopt::set_socket_keepalive(&stream, true)?;
                sockopt::set_tcp_keepidle(&stream, idle)?;
                sockopt::set_tcp_keepintvl(&stream, interval)?;
                sockopt::set_tcp_keepcnt(&stream, count)?;
                Ok((Socket::Tcp(stream), peer.to_string()))
            }
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Self::Unix(listener, _) => listener.register(registry, token, Interest::READABLE),
            Self::Tcp(listener) => listener.register(registry, token, Interest::READABLE),
        }
    }
}

/// Whether to try again at once.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

/// A Unix socket of the owner alone, that waits for connections and blocks. Its name goes when it is dropped.
#[derive(Debug)]
pub struct PrivateSocket {
    listener: unix::UnixListener,
    _file: SocketFile,
}

impl PrivateSocket {
    /// Listens at `path`, with mode 0600 from the first moment on.
    ///
    /// # Errors
    /// The path cannot be listened at.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let failed = |error| BindError::Io(Address::Unix(path.into()), error);
        make_room(path)?;
        let (listener, file) = bind_unix(path).map_err(failed)?;
        listener.set_nonblocking(false).map_err(failed)?;
        Ok(Self { listener, _file: file })
    }

    /// A second handle to accept connections at.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn listener(&self) -> io::Result<unix::UnixListener> {
        self.listener.try_clone()
    }
}

/// Removes what a dead server has left.
fn make_room(path: &Path) -> Result<(), BindError> {
    let failed = |error| BindError::Io(Address::Unix(path.into()), error);
    // Linux takes a byte more, without the NUL; clients do not.
    if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return Err(failed(io::ErrorKind::InvalidFilename.into()));
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(BindError::NotASocket(path.into()));
        }
        Ok(_) => {}
    }
    match unix::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            match fs::remove_file(path) {
                // Its owner was still about to go.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed.map_err(failed),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(_) => Err(BindError::InUse(path.into())),
    }
}

fn bind_unix(path: &Path) -> io::Result<(unix::UnixListener, SocketFile)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    let metadata = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.into(), identity: (metadata.dev(), metadata.ino()) };
    listen(&socket, BACKLOG)?;
    Ok((socket.into(), file))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity);
        if is_ours {
            // A name that stays does no harm: the next server replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "cannot listen on unix:{0}: another server is listening on it; stop that server or choose another path",
                path.display()
            ),
            Self::NotASocket(path) => write!(
                f,
                "cannot listen on unix:{0}: the path exists and is not a socket; remove it or choose another path",
                path.display()
            ),
            Self::NotLoopback(address) => write!(
                f,
                "refusing to listen on {address}: every machine that reaches this port could read and write the drive, \
                 without a password"
            ),
            Self::Io(address, error) => {
                write!(f, "cannot listen on {address}: ")?;
                match (address, error.kind()) {
                    (Address::Unix(path), io::ErrorKind::NotFound) => f.write_str(match path.parent() {
                        Some(directory) if directory.is_dir() => {
                            "sockets cannot be created in its directory; choose another path"
                        }
                        _ => "its directory does not exist; create it or choose another path",
                    }),
                    (Address::Unix(_), io::ErrorKind::InvalidFilename) => write!(
                        f,
                        "path exceeds {SOCKET_PATH_BYTES_MAX} bytes, the maximum for a socket; choose a shorter one"
                    ),
                    (_, io::ErrorKind::AddrInUse) => {
                        f.write_str("address in use by another program; stop it or choose another port")
                    }
                    (_, io::ErrorKind::PermissionDenied) => {
                        write!(f, "{error}; choose a directory that you can write to, or a port above 1023")
                    }
                    _ => error.fmt(f),
                }
            }
        }
    }
}

impl Error for BindError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tests::Place;

    #[test]
    fn a_socket_is_its_owners_alone_and_goes_with_the_listener() {
        let place = Place::new();
        let listener = Listener::bind(&place.address(), false).unwrap();
        assert_eq!(fs::metadata(place.socket()).unwrap().mode() & 0o777, 0o600);
        drop(listener);
        assert!(!place.socket().exists());
    }

    #[test]
    fn a_dead_socket_is_replaced() {
        let place = Place::new();
        drop(unix::UnixListener::bind(place.socket()).unwrap());
        assert!(place.socket().exists());
        Listener::bind(&place.address(), false).unwrap();
    }

    #[test]
    fn a_live_socket_is_left_alone() {
        let place = Place::new();
        let first = Listener::bind(&place.address(), false).unwrap();
        assert!(matches!(Listener::bind(&place.address(), false), Err(BindError::InUse(_))));
        assert!(place.socket().exists());
        drop(first);
    }

    #[test]
    fn a_link_is_not_followed_and_left_alone() {
        let place = Place::new();
        let protected = place.socket().with_file_name("protected");
        std::os::unix::fs::symlink(&protected, place.socket()).unwrap();
        assert!(matches!(Listener::bind(&place.address(), false), Err(BindError::NotASocket(_))));
        assert!(matches!(PrivateSocket::bind(&place.socket()), Err(BindError::NotASocket(_))));
        assert!(place.socket().is_symlink() && !protected.exists());
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let place = Place::new();
        fs::write(place.socket(), "precious").unwrap();
        assert!(matches!(Listener::bind(&place.address(), false), Err(BindError::NotASocket(_))));
        assert_eq!(fs::read(place.socket()).unwrap(), b"precious");
    }

    #[test]
    fn a_listener_does_not_remove_the_socket_of_another() {
        let place = Place::new();
        let first = Listener::bind(&place.address(), false).unwrap();
        fs::remove_file(place.socket()).unwrap();
        let second = unix::UnixListener::bind(place.socket()).unwrap();
        drop(first);
        assert!(place.socket().exists());
        drop(second);
    }

    #[test]
    fn a_directory_that_takes_no_sockets_is_not_called_missing() {
        let address = Address::Unix("/proc/uaskit.sock".into());
        let text = Listener::bind(&address, false).unwrap_err().to_string();
        assert!(text.contains("sockets cannot be created in its directory"), "{text}");
    }

    #[test]
    fn a_missing_directory_is_an_error_that_says_what_to_do() {
        let place = Place::new();
        let path = place.socket().join("deeper");
        let error = Listener::bind(&Address::Unix(path.clone()), false).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("its directory does not exist; create it"), "{text}");
        assert!(PrivateSocket::bind(&path).is_err());
    }

    #[test]
    fn a_path_that_is_too_long_is_an_error_with_the_limit() {
        let path = PathBuf::from("x".repeat(SOCKET_PATH_BYTES_MAX + 1));
        let text = Listener::bind(&Address::Unix(path), false).unwrap_err().to_string();
        assert!(
            text.ends_with("path exceeds 107 bytes, the maximum for a socket; choose a shorter one"),
            "{text}"
        );
    }

    #[test]
    fn a_port_in_use_is_an_error() {
        let first = Listener::bind(&Address::Tcp("127.0.0.1:0".into()), false).unwrap();
        let text = Listener::bind(&first.address().unwrap(), false).unwrap_err().to_string();
        assert!(
            text.ends_with("address in use by another program; stop it or choose another port"),
            "{text}"
        );
    }

    #[test]
    fn a_private_socket_is_its_owners_alone_and_goes() {
        let place = Place::new();
        let socket = PrivateSocket::bind(&place.socket()).unwrap();
        assert_eq!(fs::metadata(place.socket()).unwrap().mode() & 0o777, 0o600);
        let listener = socket.listener().unwrap();
        drop(socket);
        assert!(!place.socket().exists());
        drop(listener);
    }

    #[test]
    fn a_network_address_has_to_be_allowed() {
        let everywhere = Address::Tcp("0.0.0.0:0".into());
        let error = Listener::bind(&everywhere, false).unwrap_err();
        assert!(matches!(error, BindError::NotLoopback(_)));
        assert!(error.to_string().starts_with("refusing to listen on 0.0.0.0:0"));
        Listener::bind(&everywhere, true).unwrap();
        Listener::bind(&Address::Tcp("127.0.0.1:0".into()), false).unwrap();
    }
}
