//! The hash of a step's input: given, or computed from the input itself.

use crate::cli::{Input, InputArgs};
use crate::protocol::ids::Name;
use crate::protocol::input_hash::input_hash;
use crate::state::read_input;

use super::failure::Failure;

/// The hash named by a call's options, if any was.
pub(crate) fn hash(step: Option<&Name>, args: &InputArgs) -> Result<Option<Name>, Failure> {
    let path = match (&args.input_hash, &args.input) {
        (Some(hash), _) => return Ok(Some(hash.clone())),
        (None, None) => return Ok(None),
        (None, Some(Input::Stdin)) => None,
        (None, Some(Input::File(path))) => Some(path.as_path()),
    };
    let step = step.ok_or_else(|| Failure::usage("--input needs --step"))?;
    let bytes =
        read_input(path).map_err(|error| Failure::usage(format!("the input cannot be read: {error}")))?;
    let value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::usage(format!("the input is not one JSON value: {error}")))?;
    let hash = input_hash(step, &value).map_err(|error| Failure::internal(error.to_string()))?;
    Ok(Some(hash))
}

/// The hash of a call that must name one.
pub(crate) fn required(step: &Name, args: &InputArgs) -> Result<Name, Failure> {
    hash(Some(step), args)?.ok_or_else(|| Failure::usage("--input-hash or --input is missing"))
}
