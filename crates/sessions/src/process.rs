//! stub
use std::path::*;use std::ffi::*;use agentwire_dialects::agent::{Exit,Launch};use tokio::net::unix::pipe;
pub struct Contain; impl Contain{pub async fn probe(_k:Option<PathBuf>)->Contain{Contain} pub async fn spawn(&self,_s:Spawn)->Result<Process,std::io::Error>{Err(std::io::Error::other(""))}}
pub struct Spawn{pub stdin:StdinPlan} pub enum StdinPlan{Pipe,Null}
pub struct Process{pub stdin:Option<pipe::Sender>,pub stdout:pipe::Receiver,pub stderr:pipe::Receiver,pub control:Control}
pub struct Control; impl Control{pub fn signal(&self,_s:TreeSignal){} pub async fn exited(&mut self)->Exit{Exit::Unknown} pub async fn gone(&mut self){}}
#[derive(Clone,Copy,Debug)] pub enum TreeSignal{Interrupt,Terminate,Kill,Pause,Continue}
pub struct LaunchFiles; pub fn prepare(_l:Launch,_p:PathBuf,_r:&Path)->std::io::Result<(Spawn,LaunchFiles)>{Err(std::io::Error::other(""))}
pub fn resolve(_p:&str,_e:Option<&OsStr>,_d:&Path)->Result<PathBuf,std::io::Error>{Err(std::io::Error::other(""))}
