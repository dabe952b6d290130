//! Codes of options, their replies, commands and errors.

code! {
    /// Purpose of an option (proto.md, "Option types").
    pub enum OptionCode: u32 {
        /// Chooses an export, without a way to refuse.
        ExportName = 1 => "EXPORT_NAME",
        /// Ends the session.
        Abort = 2 => "ABORT",
        /// Asks for the names of exports.
        List = 3 => "LIST",
        /// Withdrawn.
        PeekExport = 4 => "PEEK_EXPORT",
        /// Goes on encrypted.
        StartTls = 5 => "STARTTLS",
        /// Asks about an export.
        Info = 6 => "INFO",
        /// Chooses an export.
        Go = 7 => "GO",
        /// Asks for structured replies.
        StructuredReply = 8 => "STRUCTURED_REPLY",
        /// Asks for the metadata contexts that there are.
        ListMetaContext = 9 => "LIST_META_CONTEXT",
        /// Chooses metadata contexts.
        SetMetaContext = 10 => "SET_META_CONTEXT",
        /// Asks for 64-bit lengths.
        ExtendedHeaders = 11 => "EXTENDED_HEADERS",
    }
}

code! {
    /// Outcome of an option (proto.md, "Option reply types"). Those with the highest bit are errors.
    pub enum OptionReplyKind: u32 {
        /// It is done.
        Ack = 1 => "ACK",
        /// An export of a list.
        Server = 2 => "SERVER",
        /// A detail of an export.
        Info = 3 => "INFO",
        /// A metadata context.
        MetaContext = 4 => "META_CONTEXT",
        /// The server does not know the option.
        Unsupported = 0x8000_0001 => "ERR_UNSUP",
        /// The server's owner forbids it.
        Policy = 0x8000_0002 => "ERR_POLICY",
        /// The request was wrong.
        Invalid = 0x8000_0003 => "ERR_INVALID",
        /// The server's platform does not have it.
        Platform = 0x8000_0004 => "ERR_PLATFORM",
        /// Only after STARTTLS.
        TlsRequired = 0x8000_0005 => "ERR_TLS_REQD",
        /// There is no such export.
        UnknownExport = 0x8000_0006 => "ERR_UNKNOWN",
        /// The server ends.
        Shutdown = 0x8000_0007 => "ERR_SHUTDOWN",
        /// The client must ask for block sizes.
        BlockSizeRequired = 0x8000_0008 => "ERR_BLOCK_SIZE_REQD",
        /// The request was too long.
        TooBig = 0x8000_0009 => "ERR_TOO_BIG",
        /// Only after EXTENDED_HEADERS.
        ExtendedHeadersRequired = 0x8000_000a => "ERR_EXT_HEADER_REQD",
    }
}

impl OptionReplyKind {
    /// Whether the option has failed.
    pub fn is_error(self) -> bool {
        u32::from(self) & 0x8000_0000 != 0
    }
}

code! {
    /// Operation of a request (proto.md, "Request types").
    pub enum Command: u16 {
        /// Reads bytes.
        Read = 0 => "READ",
        /// Writes bytes.
        Write = 1 => "WRITE",
        /// Ends the session; has no reply.
        Disconnect = 2 => "DISC",
        /// Makes what was written and answered durable.
        Flush = 3 => "FLUSH",
        /// Drops bytes; what they read as then is not defined.
        Trim = 4 => "TRIM",
        /// Announces that bytes will be read.
        Cache = 5 => "CACHE",
        /// Makes bytes read as zero.
        WriteZeroes = 6 => "WRITE_ZEROES",
        /// Asks for the state of bytes in the chosen metadata contexts.
        BlockStatus = 7 => "BLOCK_STATUS",
        /// Changes the size; an experiment.
        Resize = 8 => "RESIZE",
    }
}

code! {
    /// Why a request failed (proto.md, "Error values"). Numbers of errno(3) on Linux.
    pub enum ErrorCode: u32 {
        /// Nothing failed.
        None = 0 => "no error",
        /// Not permitted: the export is read-only.
        NotPermitted = 1 => "EPERM",
        /// Input or output failed.
        Io = 5 => "EIO",
        /// The server has no memory.
        OutOfMemory = 12 => "ENOMEM",
        /// The request is not valid.
        Invalid = 22 => "EINVAL",
        /// There is no space.
        OutOfSpace = 28 => "ENOSPC",
        /// The request is too large.
        Overflow = 75 => "EOVERFLOW",
        /// The server does not do that.
        NotSupported = 95 => "ENOTSUP",
        /// The server ends.
        Shutdown = 108 => "ESHUTDOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_highest_bit() {
        assert!(OptionReplyKind::UnknownExport.is_error() && OptionReplyKind::from(0x8000_00ff).is_error());
        assert!(!OptionReplyKind::Ack.is_error() && !OptionReplyKind::from(77).is_error());
    }

    #[test]
    fn codes_survive() {
        for code in [0_u32, 1, 5, 7, 22, 28, 95, 108, 4711] {
            assert_eq!(u32::from(ErrorCode::from(code)), code);
            assert_eq!(u32::from(OptionCode::from(code)), code);
        }
    }
}
