//! stub
use std::borrow::Cow;use std::path::*;use agentwire_protocol::*;use agentwire_protocol::event::ToolKind;
pub struct Policy; pub struct Asked<'a>{pub tool_name:Option<&'a str>,pub kind:Option<ToolKind>,pub input:Option<&'a Json<'a>>,pub title:Option<&'a str>,pub server:Option<&'a str>,pub blocked_path:Option<&'a str>}
pub enum Verdict{Allow(Cow<'static,str>),Deny(Cow<'static,str>),Ask}
impl Policy{pub fn new(_a:AgentType,_c:&SessionConfig)->Result<Policy,GatewayError>{Ok(Policy)} pub fn set_mode(&mut self,_m:ApprovalMode){} pub fn decide(&self,_a:&Asked<'_>,_r:&dyn Fn(&Path)->PathBuf)->Verdict{Verdict::Ask} pub fn remember(&mut self,_a:&Asked<'_>,_b:bool)->String{String::new()}}
