//! ATA: IDENTIFY DEVICE, SMART, register layouts (ACS-4, SAT-4).
