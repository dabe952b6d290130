//! Negotiation with a server, without I/O: bytes in, bytes out, terms or a reason at the end (proto.md, "Fixed newstyle
//! negotiation").
//!
//! Asked for in this order: structured replies, then the context `base:allocation`, which needs them, then the export with its
//! block sizes. A server without the first two is as good, only without knowledge of holes.
//!
//! Left out: STARTTLS; EXPORT_NAME, which has no way to say why it fails. All servers of today have GO.

use super::error::NbdReason;
use super::terms::Terms;
use wire::nbd::{
    BASE_ALLOCATION, ClientFlags, ExportDetail, ExportInfo, Go, HandshakeFlags, MetaContext, OptionCode,
    OptionHeader, OptionReply, OptionReplyKind, PAYLOAD_LEN_MAX, STRING_LEN_MAX, ServerHello, SetMetaContext,
};
use wire::{DecodeError, Legible};

/// Replies to one option at most. A server needs four.
const REPLIES_MAX: u32 = 64;

/// A negotiation in progress.
#[derive(Debug)]
pub(super) struct Handshake {
    export: Vec<u8>,
    stage: Stage,
    outgoing: Vec<u8>,
    replies: u32,
    is_structured: bool,
    allocation: Option<u32>,
    info: Option<ExportInfo>,
    block_min: u32,
    payload_max: u32,
}

/// Message that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    ServerHello,
    Option(OptionCode),
    Over,
}

impl Handshake {
    /// A negotiation for an export, of at most [`STRING_LEN_MAX`] bytes of name.
    pub(super) fn new(export: &[u8]) -> Self {
        Self {
            export: export.to_vec(),
            stage: Stage::ServerHello,
            outgoing: Vec::new(),
            replies: 0,
            is_structured: false,
            allocation: None,
            info: None,
            block_min: 1,
            payload_max: PAYLOAD_LEN_MAX,
        }
    }

    /// Bytes for the server. Those that were sent are removed by their owner.
    pub(super) const fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// The terms, once everything is agreed.
    pub(super) fn terms(&self) -> Option<Terms> {
        let info = self.info.filter(|_| self.stage == Stage::Over)?;
        Some(Terms {
            size_bytes: info.size_bytes,
            flags: info.flags,
            block_min: self.block_min,
            payload_max: self.payload_max,
            is_structured: self.is_structured,
            allocation: self.allocation,
        })
    }

    /// Takes a message from the beginning of `bytes`. Returns how many bytes that were; 0: it is not complete.
    ///
    /// # Errors
    /// Why the export cannot be used.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<usize, NbdReason> {
        match self.stage {
            Stage::Over => Ok(0),
            Stage::ServerHello => {
                let hello = match ServerHello::decode(bytes) {
                    Err(DecodeError::Truncated { .. }) => return Ok(0),
                    hello => hello.map_err(|_| NbdReason::NotNbd)?,
                };
                if !hello.flags.has(HandshakeFlags::FIXED_NEWSTYLE) {
                    return Err(NbdReason::TooOld);
                }
                self.begin(hello);
                Ok(ServerHello::LEN)
            }
            Stage::Option(option) => {
                let reply = match OptionReply::decode(bytes) {
                    Err(DecodeError::Truncated { .. }) => return Ok(0),
                    reply => reply.map_err(NbdReason::Malformed)?,
                };
                let len = OptionReply::LEN + reply.data_len as usize;
                let Some(data) = bytes.get(OptionReply::LEN..len) else { return Ok(0) };
                if reply.option != option {
                    let (expected, found) = (option.into(), reply.option.into());
                    return Err(NbdReason::Malformed(DecodeError::WrongKind { expected, found }));
                }
                self.replies += 1;
                if self.replies > REPLIES_MAX {
                    let (field, value) = ("number of option replies", self.replies.into());
                    return Err(NbdReason::Malformed(DecodeError::Invalid { field, value }));
                }
                self.handle(option, reply.kind, data)?;
                Ok(len)
            }
        }
    }

    fn begin(&mut self, hello: ServerHello) {
        let mut flags = ClientFlags::FIXED_NEWSTYLE;
        if hello.flags.has(HandshakeFlags::NO_ZEROES) {
            flags = flags.with(ClientFlags::NO_ZEROES);
        }
        self.outgoing.extend_from_slice(&flags.encode());
        self.ask(OptionCode::StructuredReply);
    }

    /// Sends an option with its data.
    fn ask(&mut self, option: OptionCode) {
        let mut data = [0; 2 * STRING_LEN_MAX];
        let written = match option {
            OptionCode::Go => Go { name: &self.export, block_sizes: true }.encode(&mut data),
            OptionCode::SetMetaContext => {
                SetMetaContext { export: &self.export, query: BASE_ALLOCATION.as_bytes() }.encode(&mut data)
            }
            _ => Ok(0),
        };
        // There is room: a name has its limit.
        let data = &data[..written.unwrap_or_default()];
        self.outgoing.extend_from_slice(&OptionHeader { option, data_len: data.len() as u32 }.encode());
        self.outgoing.extend_from_slice(data);
        self.replies = 0;
        self.stage = Stage::Option(option);
    }

    fn handle(&mut self, option: OptionCode, kind: OptionReplyKind, data: &[u8]) -> Result<(), NbdReason> {
        match (option, kind) {
            // Whatever is asked for first is refused like this.
            (_, OptionReplyKind::TlsRequired) => return Err(NbdReason::TlsRequired),
            (OptionCode::StructuredReply, OptionReplyKind::Ack) => {
                self.is_structured = true;
                self.ask(OptionCode::SetMetaContext);
            }
            (OptionCode::StructuredReply, _) => self.ask(OptionCode::Go),
            (OptionCode::SetMetaContext, OptionReplyKind::MetaContext) => {
                let context = MetaContext::decode(data).map_err(NbdReason::Malformed)?;
                if context.name == BASE_ALLOCATION.as_bytes() {
                    self.allocation = Some(context.id);
                }
            }
            // With an error as well: GO says why.
            (OptionCode::SetMetaContext, _) => self.ask(OptionCode::Go),
            (_, OptionReplyKind::Info) => self.learn(data)?,
            (_, OptionReplyKind::Ack) => {
                if self.info.is_none() {
                    let (field, value) = ("size of the export", 0);
                    return Err(NbdReason::Malformed(DecodeError::Invalid { field, value }));
                }
                self.stage = Stage::Over;
            }
            (_, OptionReplyKind::UnknownExport) => return Err(NbdReason::NoExport),
            (_, OptionReplyKind::Unsupported) => return Err(NbdReason::TooOld),
            (_, kind) => {
                return Err(NbdReason::Refused { kind, words: Legible(data).to_string() });
            }
        }
        Ok(())
    }

    fn learn(&mut self, data: &[u8]) -> Result<(), NbdReason> {
        match ExportDetail::decode(data).map_err(NbdReason::Malformed)? {
            ExportDetail::Export(info) => self.info = Some(info),
            ExportDetail::BlockSizes(sizes) => {
                self.block_min = sizes.minimum;
                self.payload_max = sizes.maximum.min(PAYLOAD_LEN_MAX);
            }
            ExportDetail::Other(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::nbd::TransmissionFlags;

    const HELLO: &[u8] = b"NBDMAGICIHAVEOPT\0\x03";

    fn reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
        let (option, kind) = (option.into(), kind.into());
        let header = OptionReply { option, kind, data_len: data.len() as u32 };
        [&header.encode()[..], data].concat()
    }

    /// Feeds the bytes one message at a time.
    fn run(handshake: &mut Handshake, bytes: &[u8]) -> Result<(), NbdReason> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = handshake.receive(rest)?;
            assert!(taken > 0, "a whole message is taken");
            rest = &rest[taken..];
        }
        Ok(())
    }

    #[test]
    fn everything_is_agreed() {
        let mut handshake = Handshake::new(b"disk");
        run(&mut handshake, HELLO).unwrap();
        assert_eq!(*handshake.outgoing(), *b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0");
        handshake.outgoing().clear();
        run(&mut handshake, &reply(8, 1, &[])).unwrap();
        assert_eq!(
            *handshake.outgoing(),
            *b"IHAVEOPT\0\0\0\x0a\0\0\0\x1f\0\0\0\x04disk\0\0\0\x01\0\0\0\x0fbase:allocation"
        );
        handshake.outgoing().clear();
        let context = reply(10, 4, b"\0\0\0\x07base:allocation");
        run(&mut handshake, &[context, reply(10, 1, &[])].concat()).unwrap();
        assert_eq!(*handshake.outgoing(), *b"IHAVEOPT\0\0\0\x07\0\0\0\x0c\0\0\0\x04disk\0\x01\0\x03");
        let size = reply(7, 3, &[0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x4d]);
        let blocks = reply(7, 3, &[0, 3, 0, 0, 2, 0, 0, 0, 0x10, 0, 4, 0, 0, 0]);
        assert_eq!(handshake.terms(), None);
        run(&mut handshake, &[size, blocks, reply(7, 1, &[])].concat()).unwrap();
        let terms = handshake.terms().unwrap();
        assert_eq!((terms.size_bytes, terms.block_min, terms.payload_max), (1 << 20, 512, 32 << 20));
        assert!(terms.is_structured && terms.can(TransmissionFlags::SEND_FUA));
        assert_eq!(terms.allocation, Some(7));
    }

    #[test]
    fn a_server_with_simple_replies_alone_is_as_good() {
        let mut handshake = Handshake::new(b"");
        let size = reply(7, 3, &[0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3]);
        let unsupported = reply(8, 0x8000_0001, b"no");
        run(&mut handshake, &[HELLO, &unsupported, &size, &reply(7, 1, &[])].concat()).unwrap();
        let terms = handshake.terms().unwrap();
        assert!(!terms.is_structured && terms.can(TransmissionFlags::READ_ONLY));
        assert_eq!((terms.allocation, terms.block_min), (None, 1));
    }

    #[test]
    fn a_refusal_has_its_reason() {
        let after = |bytes: &[u8]| run(&mut Handshake::new(b"x"), bytes).unwrap_err();
        let go = [HELLO, &reply(8, 0x8000_0001, b"")].concat();
        assert!(matches!(after(b"SSH-2.0-OpenSSH_9.2p1 Debian"), NbdReason::NotNbd));
        assert!(matches!(after(b"NBDMAGICIHAVEOPT\0\0"), NbdReason::TooOld));
        assert!(matches!(after(&[HELLO, &reply(8, 0x8000_0005, b"")].concat()), NbdReason::TlsRequired));
        assert!(matches!(after(&[&go[..], &reply(7, 0x8000_0006, b"")].concat()), NbdReason::NoExport));
        let refused = after(&[&go[..], &reply(7, 0x8000_0002, b"not you")].concat());
        let NbdReason::Refused { kind: OptionReplyKind::Policy, words } = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(words, "not you");
        assert!(matches!(after(&[&go[..], &reply(7, 1, b"")].concat()), NbdReason::Malformed(_)));
        assert!(matches!(after(&[&go[..], &reply(8, 1, b"")].concat()), NbdReason::Malformed(_)));
    }

    #[test]
    fn replies_without_end_are_an_error() {
        let mut handshake = Handshake::new(b"x");
        let other = reply(7, 3, &[0, 2]);
        let go = [HELLO, &reply(8, 0x8000_0001, b"")].concat();
        run(&mut handshake, &go).unwrap();
        assert!(run(&mut handshake, &other.repeat(64)).is_ok());
        assert!(run(&mut handshake, &other).is_err());
    }

    #[test]
    fn a_message_in_pieces_waits_for_the_rest() {
        let bytes = [HELLO, &reply(8, 0x8000_0001, b"words")].concat();
        let mut handshake = Handshake::new(b"x");
        for len in 0..18 {
            assert_eq!(handshake.receive(&bytes[..len]).unwrap(), 0);
        }
        assert_eq!(handshake.receive(&bytes).unwrap(), 18);
        for len in 18..bytes.len() {
            assert_eq!(handshake.receive(&bytes[18..len]).unwrap(), 0);
        }
        assert_eq!(handshake.receive(&bytes[18..]).unwrap(), 25);
    }
}
