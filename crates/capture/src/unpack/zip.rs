//! ZIP archives (PKWARE's APPNOTE 4.3), read from front to end, so that they can come through a pipe.
//!
//! The first member that is a capture is what the archive stands for; other members are passed over, and a second capture is an
//! error, since it would be ignored. Members are stored or deflated. Left out: the directory at the end, encryption, other
//! methods, sizes past 4 GiB of stored members. The library for archives needs the directory, and with it a file.

use super::{invalid, is_compressed};
use crate::reader::is_capture;
use flate2::bufread::DeflateDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read, Take};

/// Bytes of a member by which it is known.
const FRONT_BYTES: u64 = 4096;
/// Members that are looked at.
const MEMBERS_MAX: u32 = 1_000;
const MEMBER: &[u8; 4] = b"PK\x03\x04";
const DESCRIPTOR: &[u8; 4] = b"PK\x07\x08";

/// An archive as a stream of its capture.
pub(super) struct Archive<R> {
    state: State<R>,
    /// How the member at the front begins.
    front: Cursor<Vec<u8>>,
    has_capture: bool,
    members: u32,
}

enum State<R> {
    /// The next member, or the directory, follows.
    Between(BufReader<R>),
    /// In the capture.
    In(Member<R>),
    /// At the end.
    Finished,
}

/// A member whose bytes follow.
struct Member<R> {
    bytes: Bytes<R>,
    /// Whether a descriptor with its sizes follows.
    has_descriptor: bool,
}

enum Bytes<R> {
    Stored(Take<BufReader<R>>),
    Deflated(DeflateDecoder<BufReader<R>>),
}

impl<R: Read> Archive<R> {
    pub(super) fn new(input: R) -> Self {
        let state = State::Between(BufReader::new(input));
        Self { state, front: Cursor::default(), has_capture: false, members: 0 }
    }

    /// Goes to the next capture, or to the end.
    fn advance(&mut self, mut input: BufReader<R>) -> io::Result<()> {
        while let Some(head) = Head::read(&mut input)? {
            let mut member = head.open(input)?;
            self.members += 1;
            if self.members > MEMBERS_MAX {
                return Err(invalid(format!(
                    "the archive has more than {MEMBERS_MAX} members: unpack it first"
                )));
            }
            let mut front = Vec::new();
            member.by_ref().take(FRONT_BYTES).read_to_end(&mut front)?;
            if is_capture(&front) || is_compressed(&front) {
                if self.has_capture {
                    let text = "the archive has another capture: unpack it and decode one at a time";
                    return Err(invalid(text.into()));
                }
                self.has_capture = true;
                (self.front, self.state) = (Cursor::new(front), State::In(member));
                return Ok(());
            }
            io::copy(&mut member, &mut io::sink())?;
            input = member.end()?;
        }
        if self.has_capture { Ok(()) } else { Err(invalid("the archive has no capture".into())) }
    }
}

impl<R: Read> Read for Archive<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::Finished) {
                State::Between(input) => self.advance(input)?,
                State::In(mut member) => {
                    let read = match self.front.read(buffer)? {
                        0 => member.read(buffer)?,
                        read => read,
                    };
                    self.state = if read == 0 && !buffer.is_empty() {
                        State::Between(member.end()?)
                    } else {
                        State::In(member)
                    };
                    if read > 0 || buffer.is_empty() {
                        return Ok(read);
                    }
                }
                State::Finished => return Ok(0),
            }
        }
    }
}

/// Local file header: precedes a member (APPNOTE clause 4.3.7).
///
/// ```text
///  0..4  signature     8..10 method       18..22 compressed size    26..28 length of the name
///  4..6  version      10..14 time, date   22..26 size               28..30 length of the extra field
///  6..8  flags        14..18 CRC-32                                 30..   name, extra field
/// ```
struct Head {
    is_encrypted: bool,
    has_descriptor: bool,
    method: u16,
    compressed_bytes: u32,
}

impl Head {
    /// The head of the next member; none at the directory.
    fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut signature = [0; 4];
        match input.read_exact(&mut signature) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        if signature != *MEMBER {
            return Ok(None);
        }
        let mut rest = [0; 26];
        input.read_exact(&mut rest)?;
        let [_, _, flags, _, m0, m1, _, _, _, _, _, _, _, _, c0, c1, c2, c3, _, _, _, _, n0, n1, e0, e1] =
            rest;
        let names = u64::from(u16::from_le_bytes([n0, n1])) + u64::from(u16::from_le_bytes([e0, e1]));
        if io::copy(&mut input.take(names), &mut io::sink())? < names {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(Self {
            is_encrypted: !flags.is_multiple_of(2),
            has_descriptor: flags / 8 % 2 == 1,
            method: u16::from_le_bytes([m0, m1]),
            compressed_bytes: u32::from_le_bytes([c0, c1, c2, c3]),
        }))
    }

    /// The member, whose bytes are next in the input.
    fn open<R: Read>(self, input: BufReader<R>) -> io::Result<Member<R>> {
        const STORED: u16 = 0;
        const DEFLATED: u16 = 8;
        let Self { is_encrypted, has_descriptor, method, compressed_bytes } = self;
        let bytes = match method {
            _ if is_encrypted => return Err(invalid("the archive is encrypted: unpack it first".into())),
            STORED if has_descriptor || compressed_bytes == u32::MAX => {
                return Err(invalid(
                    "a stored member has no size in front of it: unpack the archive first".into(),
                ));
            }
            STORED => Bytes::Stored(input.take(compressed_bytes.into())),
            DEFLATED => Bytes::Deflated(DeflateDecoder::new(input)),
            _ => return Err(invalid(format!("the archive uses method {method}: unpack it first"))),
        };
        Ok(Member { bytes, has_descriptor })
    }
}

impl<R: Read> Member<R> {
    /// The input behind a member that was read to its end.
    fn end(self) -> io::Result<BufReader<R>> {
        let mut input = match self.bytes {
            Bytes::Stored(take) => take.into_inner(),
            Bytes::Deflated(decoder) => decoder.into_inner(),
        };
        if self.has_descriptor {
            skip_descriptor(&mut input)?;
        }
        Ok(input)
    }
}

impl<R: Read> Read for Member<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.bytes {
            Bytes::Stored(take) => take.read(buffer),
            Bytes::Deflated(decoder) => decoder.read(buffer),
        }
    }
}

/// CRC and sizes behind a member (APPNOTE clause 4.3.9), with or without a signature, sizes of four or of eight bytes.
fn skip_descriptor(input: &mut impl BufRead) -> io::Result<()> {
    let mut bytes = [0; 12];
    input.read_exact(&mut bytes)?;
    if bytes.starts_with(DESCRIPTOR) {
        input.read_exact(&mut bytes[..4])?;
    }
    // What follows is a signature, unless the sizes have eight bytes.
    let next = input.fill_buf()?;
    if !next.is_empty() && !next.starts_with(b"P") {
        let mut more = [0; 8];
        input.read_exact(&mut more)?;
    }
    Ok(())
}
