//! Settings: defaults, then the file, then the environment, then flags.

use std::path::PathBuf;

use agentwire_protocol::{AgentType, ErrorCode, GatewayError};
use agentwire_sessions::Settings;

use crate::args::Global;

/// What a verb runs with.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// What the engine is told.
    pub(crate) engine: Settings,
    /// The agent to start where none is named.
    pub(crate) agent: Option<AgentType>,
}

/// Reads the settings.
pub(crate) fn load(global: &Global) -> Result<Loaded, GatewayError> {
    let keeper = std::env::current_exe().ok();
    let data_dir = match &global.data_dir {
        Some(directory) => directory.clone(),
        None => data_home()?.join("agentwire"),
    };
    Ok(Loaded { engine: Settings { data_dir, keeper, ..Settings::default() }, agent: None })
}

fn data_home() -> Result<PathBuf, GatewayError> {
    let given =
        std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::home_dir().map(|home| home.join(".local/share"));
    given.or_else(home).ok_or_else(|| {
        let message = "there is no home directory; set AGENTWIRE_DATA_DIR";
        GatewayError::new(ErrorCode::InvalidMessage, message)
    })
}
