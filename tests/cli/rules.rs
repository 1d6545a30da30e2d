//! The numbered tests of attempt fencing, as this tool reads them: separate processes of the real binary, over
//! owners that really die. The number stands in the name of the test.

mod admission;
mod claims;
mod classification;
mod closing;
mod consequences;
mod findings;
mod identity;
mod lineage;
mod processes;
mod receipts;
