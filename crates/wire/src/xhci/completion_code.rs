//! Completion codes (xHCI 1.2 clause 6.4.5).

code! {
    /// How a TRB ended, as an event says.
    pub enum CompletionCode: u8 {
        /// Nothing has been said.
        Invalid = 0x00 => "invalid",
        /// As asked.
        Success = 0x01 => "success",
        /// The controller could not keep up with its memory.
        DataBufferError = 0x02 => "data buffer error",
        /// The device sent more than there was room for.
        BabbleDetected = 0x03 => "babble detected",
        /// No or no valid answer from the device, after the retries.
        UsbTransactionError = 0x04 => "USB transaction error",
        /// A field of the TRB is not allowed.
        TrbError = 0x05 => "TRB error",
        /// The device answered with a stall; the endpoint is halted.
        StallError = 0x06 => "stall error",
        /// The controller has no room for it.
        ResourceError = 0x07 => "resource error",
        /// There is no bandwidth for the endpoint.
        BandwidthError = 0x08 => "bandwidth error",
        /// All slots are taken.
        NoSlotsAvailable = 0x09 => "no slots available",
        /// The stream context type does not fit.
        InvalidStreamType = 0x0a => "invalid stream type",
        /// The slot is not enabled.
        SlotNotEnabled = 0x0b => "slot not enabled",
        /// The endpoint is disabled.
        EndpointNotEnabled = 0x0c => "endpoint not enabled",
        /// The device sent less than there was room for.
        ShortPacket = 0x0d => "short packet",
        /// An isochronous ring ran dry.
        RingUnderrun = 0x0e => "ring underrun",
        /// An isochronous ring ran full.
        RingOverrun = 0x0f => "ring overrun",
        /// The event ring of a virtual function is full.
        VirtualFunctionEventRingFull = 0x10 => "VF event ring full",
        /// A field of a context is not allowed.
        ParameterError = 0x11 => "parameter error",
        /// A periodic endpoint exceeded its bandwidth.
        BandwidthOverrun = 0x12 => "bandwidth overrun",
        /// The slot or endpoint is not in a state for it.
        ContextStateError = 0x13 => "context state error",
        /// No ping response in time.
        NoPingResponse = 0x14 => "no ping response",
        /// There is no room in the event ring.
        EventRingFull = 0x15 => "event ring full",
        /// The device cannot work at this port.
        IncompatibleDevice = 0x16 => "incompatible device",
        /// A periodic interval was missed.
        MissedService = 0x17 => "missed service",
        /// The command ring was stopped.
        CommandRingStopped = 0x18 => "command ring stopped",
        /// The command was aborted.
        CommandAborted = 0x19 => "command aborted",
        /// The endpoint was stopped within this TRB.
        Stopped = 0x1a => "stopped",
        /// The endpoint was stopped, and the length means nothing.
        StoppedLengthInvalid = 0x1b => "stopped, length invalid",
        /// The endpoint was stopped after a short packet; the length is what has moved in the TD.
        StoppedShortPacket = 0x1c => "stopped, short packet",
        /// The exit latencies do not fit.
        MaxExitLatencyTooLarge = 0x1d => "max exit latency too large",
        /// An isochronous buffer was overrun.
        IsochBufferOverrun = 0x1f => "isoch buffer overrun",
        /// Events were lost.
        EventLost = 0x20 => "event lost",
        /// Not said more exactly.
        Undefined = 0x21 => "undefined error",
        /// The stream id is not allowed.
        InvalidStreamId = 0x22 => "invalid stream id",
        /// There is no bandwidth for the secondary bus.
        SecondaryBandwidth = 0x23 => "secondary bandwidth error",
        /// A split transaction failed at the hub.
        SplitTransaction = 0x24 => "split transaction error",
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_value_survives_and_the_known_have_names() {
        for value in 0..=u8::MAX {
            assert_eq!(u8::from(CompletionCode::from(value)), value);
        }
        assert_eq!(CompletionCode::from(6), CompletionCode::StallError);
        assert_eq!(CompletionCode::from(13).to_string(), "short packet");
        assert_eq!(CompletionCode::from(26), CompletionCode::Stopped);
        assert_eq!(CompletionCode::from(30), CompletionCode::Unknown(30));
        assert_eq!(CompletionCode::from(200).to_string(), "unknown (0xc8)");
    }
}
