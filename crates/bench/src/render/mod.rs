//! Reports as text: for the terminal, for other programs, for documents, and as a page with plots.

pub mod csv;
pub mod doctor;
pub mod html;
pub mod json;
pub mod markdown;
pub mod terminal;
mod units;

pub use units::{bytes_from_kib, change, overhead, percent, ratio_cells, seconds, value};
