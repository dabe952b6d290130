//! NBD: what a server sends, and what a client sends.

use super::ROOM;
use wire::nbd::{
    BlockStatus, ChunkError, ChunkHeader, ExportDetail, Go, Hole, MetaContext, OptionHeader, OptionReply,
    ReplyMagic, Request, ServerHello, SetMetaContext, SimpleReply,
};

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    let mut out = vec![0; ROOM];
    round_trip!(bytes; ServerHello; OptionHeader; OptionReply; Request; SimpleReply; ChunkHeader; Hole; ChunkError);
    round_trip!(bytes; Go<'_> => out; ExportDetail => out; SetMetaContext<'_> => out; MetaContext<'_> => out; BlockStatus => out);
    if SimpleReply::decode(bytes).is_ok() {
        assert_eq!(ReplyMagic::decode(bytes), Ok(ReplyMagic::Simple));
    }
    if ChunkHeader::decode(bytes).is_ok() {
        assert_eq!(ReplyMagic::decode(bytes), Ok(ReplyMagic::Structured));
    }
}
