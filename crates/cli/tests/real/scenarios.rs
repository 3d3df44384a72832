//! The rows: what a user does with an agent, and what must come of it.

mod bad_input;
mod changes;
mod deciding;
mod endings;
mod failures;
mod fronts;
mod given;
mod guarded;
mod holds;
mod odd;
mod pages;
mod programs;
mod projects;
mod requests;
mod sessions;
mod tools;
mod traps;
mod turns;

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
    "system prompt" => given::system_prompt,
    "system prompt, more" => given::further_prompt,
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
    "changed input refused" => given::changed_refused,
    "deny" => requests::deny,
    "question" => requests::question,
    "nobody to ask" => requests::nobody,
    "rules in every mode" => deciding::blocked,
    "blocked shell" => holds::blocked_shell,
    "blocked edit" => holds::blocked_edit,
    "protected files" => deciding::protected,
    "always is exact" => deciding::always,
    "agentwire's own files" => guarded::own_files,
    "`askDangerous` changes nothing" => guarded::dangerous,
    "arguments that unguard" => guarded::arguments,
    "sandbox missing" => deciding::sandbox,
    "secrets, command line" => holds::command_line,
    "interrupt, text" => endings::mid_text,
    "interrupt, tool" => endings::mid_tool,
    "interrupt, asking" => endings::asking,
    "stop, tool" => endings::stop,
    "model change" => changes::model,
    "mode change" => changes::mode,
    "resume" => sessions::resume,
    "fork" => sessions::fork,
    "resume, files gone" => traps::lost,
    "resume, another opened" => odd::mistaken,
    "queued prompts" => traps::queued,
    "hostile prompts" => odd::hostile,
    "malformed line" => odd::malformed,
    "background turn" => odd::background,
    "`/clear`" => odd::cleared,
    "whole output" => odd::output,
    "web search" => odd::two_ids,
    "trusted project" => odd::trusted,
    "project settings left out" => projects::distrusted,
    "project settings above" => projects::above,
    "project settings trusted" => projects::trusted,
    "launcher" => odd::launcher,
    "endless text" => odd::repeats,
    "exit codes" => odd::exit_codes,
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
