//! The rows: what a user does with an agent, and what must come of it.

mod bad_input;
mod changes;
mod emulated;
mod endings;
mod failures;
mod fronts;
mod guards;
mod pages;
mod permissions;
mod program_behaviour;
mod programs;
mod projects;
mod requests;
mod rules;
mod sessions;
mod tools;
mod turns;
mod unexpected;

use crate::harness::Place;

/// A row of the matrix.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Panics if it does not come out as it must.
    pub(crate) run: fn(&mut Place),
}

macro_rules! scenarios {
    ($($name:literal => $run:path,)+) => {
        &[$(Scenario { name: $name, run: $run },)+]
    };
}

pub(crate) const SCENARIOS: &[Scenario] = scenarios! {
    "text" => turns::text,
    "thinking" => turns::thinking,
    "follow-up" => turns::follow_up,
    "image" => turns::image,
    "structured output" => turns::structured,
    "system prompt" => emulated::system_prompt,
    "system prompt, more" => emulated::further_prompt,
    "usage" => turns::usage,
    "shell" => tools::shell,
    "file written" => tools::write,
    "file edited" => tools::edit,
    "parallel tools" => tools::parallel,
    "MCP server" => tools::server,
    "client's MCP server" => tools::hosted,
    "subagent" => tools::subagent,
    "plan" => tools::plan,
    "allow" => requests::allow,
    "changed input" => requests::changed,
    "changed input refused" => emulated::changed_refused,
    "deny" => requests::deny,
    "question" => requests::question,
    "nobody to ask" => requests::nobody,
    "rules in every mode" => permissions::blocked,
    "blocked shell" => rules::blocked_shell,
    "blocked edit" => rules::blocked_edit,
    "protected files" => permissions::protected,
    "always is exact" => permissions::always,
    "agentwire's own files" => guards::own_files,
    "`askDangerous` changes nothing" => guards::dangerous,
    "arguments that unguard" => guards::arguments,
    "sandbox missing" => permissions::sandbox,
    "secrets, command line" => rules::command_line,
    "interrupt, text" => endings::mid_text,
    "interrupt, tool" => endings::mid_tool,
    "interrupt, asking" => endings::asking,
    "stop, tool" => endings::stop,
    "model change" => changes::model,
    "mode change" => changes::mode,
    "resume" => sessions::resume,
    "fork" => sessions::fork,
    "resume, files gone" => unexpected::lost,
    "resume, another opened" => program_behaviour::mistaken,
    "queued prompts" => unexpected::queued,
    "hostile prompts" => program_behaviour::hostile,
    "malformed line" => program_behaviour::malformed,
    "background turn" => program_behaviour::background,
    "`/clear`" => program_behaviour::cleared,
    "whole output" => program_behaviour::output,
    "web search" => program_behaviour::two_ids,
    "trusted project" => program_behaviour::trusted,
    "project settings left out" => projects::distrusted,
    "project settings above" => projects::above,
    "project settings trusted" => projects::trusted,
    "launcher" => program_behaviour::launcher,
    "endless text" => program_behaviour::repeats,
    "exit codes" => program_behaviour::exit_codes,
    "API error" => failures::refused,
    "retries" => failures::retried,
    "rate limit" => failures::limited,
    "broken stream" => failures::cut,
    "program missing" => bad_input::missing,
    "not signed in" => bad_input::signed_out,
    "wrong model" => bad_input::wrong_model,
    "no network" => bad_input::no_network,
    "retries told" => bad_input::told,
    "interrupt, retrying" => bad_input::retrying,
    "crash at start" => bad_input::crash,
    "flag or settings refused" => bad_input::broken,
    "silent at start" => bad_input::silent,
    "`agentwire agents`" => programs::login,
    "`agentwire run`" => turns::run,
    "`agentwire unified`" => fronts::unified,
    "`agentwire claude`" => fronts::claude,
    "`agentwire backend`" => fronts::backend,
    "`agentwire rpc`" => fronts::rpc,
    "`/insights`" => pages::insights,
    "`/api/sessions`, the board" => pages::board,
};
