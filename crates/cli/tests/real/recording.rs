//! The `Agent` that the shared speakers expect. In the tests of the fronts it is a recording; here it is a
//! real program.

/// An agent and the driver to use with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    #[expect(dead_code, reason = "the settings name it")]
    pub(crate) driver: Option<&'static str>,
}
