//! `import`.

use crate::answer::Answer;
use crate::cli::ImportArgs;

use super::context::Context;
use super::failure::Failure;

pub(crate) fn run(_context: &Context, _args: &ImportArgs) -> Result<Answer, Failure> {
    Err(Failure::internal("later"))
}
