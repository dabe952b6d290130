//! Capabilities of a unit: the two reports of MAINTENANCE IN about commands and task management (SPC-5).

use super::field::{bit, bits, bytes};

cdb! {
    /// REPORT SUPPORTED OPERATION CODES (SPC-5): all commands, or one with its usage map.
    pub struct ReportSupportedOperationCodes: "REPORT SUPPORTED OPERATION CODES" = Twelve 0xa3 / 0x0c {
        /// Timeouts are wanted with each command.
        #[doc(alias = "RCTD")]
        timeouts: bool = bit(2, 7),
        /// All commands or one.
        reporting_options: ReportingOptions = bits(2, 2, 0),
        /// Operation code of the command, if one is asked for.
        requested_operation_code: u8 = bytes(3, 3),
        /// Its service action.
        requested_service_action: u16 = bytes(4, 5),
        /// Bytes that the host has room for.
        allocation_len: u32 = bytes(6, 9),
    }
}

cdb! {
    /// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-5).
    pub struct ReportSupportedTaskManagementFunctions: "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS" =
    Twelve 0xa3 / 0x0d {
        /// The extended, 16-byte answer is wanted.
        #[doc(alias = "REPD")]
        extended: bool = bit(2, 7),
        /// Bytes that the host has room for; less than 4 is an error.
        allocation_len: u32 = bytes(6, 9),
    }
}

code! {
    /// REPORTING OPTIONS of REPORT SUPPORTED OPERATION CODES (SPC-5).
    pub enum ReportingOptions: u8 {
        /// Every command.
        All = 0x00 => "all",
        /// One operation code; an error if it has service actions.
        OperationCode = 0x01 => "operation code",
        /// One operation code and service action; an error if it has none.
        ServiceAction = 0x02 => "service action",
        /// One operation code and, if it has them, service action.
        Either = 0x03 => "operation code or service action",
    }
}

code_fields!(ReportingOptions);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DecodeError;

    #[test]
    fn report_supported_operation_codes_both_ways() {
        assert_both_ways!(
            ReportSupportedOperationCodes {
                timeouts: true,
                reporting_options: ReportingOptions::ServiceAction,
                requested_operation_code: 0x9e,
                requested_service_action: 0x0010,
                allocation_len: 512,
            },
            [0xa3, 0x0c, 0x82, 0x9e, 0x00, 0x10, 0, 0, 0x02, 0x00, 0, 0],
            "REPORT SUPPORTED OPERATION CODES timeouts service action requested_operation_code 0x9e \
             requested_service_action 0x10 allocation_len 512"
        );
    }

    #[test]
    fn report_supported_task_management_functions_both_ways() {
        assert_both_ways!(
            ReportSupportedTaskManagementFunctions { extended: true, allocation_len: 16 },
            [0xa3, 0x0d, 0x80, 0, 0, 0, 0, 0, 0, 16, 0, 0],
            "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS extended allocation_len 16"
        );
    }

    #[test]
    fn another_service_action_is_another_kind() {
        let cdb = [0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0];
        let error = DecodeError::WrongKind { expected: 0xa30c, found: 0xa30d };
        assert_eq!(ReportSupportedOperationCodes::decode(&cdb), Err(error));
    }
}
