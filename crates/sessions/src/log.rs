//! stub
use std::sync::Arc;use std::pin::Pin;use std::task::{Context,Poll};use agentwire_protocol::SessionId;use crate::store::*;
#[derive(Clone)] pub struct EventLog(Arc<dyn Store>);
impl EventLog{pub fn new(s:Arc<dyn Store>)->Self{Self(s)} pub fn store(&self)->&Arc<dyn Store>{&self.0} pub fn open(&self,_s:SessionId,_l:u64)->LogWriter{LogWriter} pub fn cursor(&self,_s:&SessionId,_a:u64)->Cursor{Cursor} pub async fn shutdown(&self){} pub fn stuck(&self)->Option<StoreError>{None}}
pub struct LogWriter; impl LogWriter{pub fn submit(&self,_a:Append)->Committed{Committed}}
pub struct Committed; impl Future for Committed{type Output=Result<(),StoreError>;fn poll(self:Pin<&mut Self>,_c:&mut Context<'_>)->Poll<Self::Output>{Poll::Ready(Ok(()))}}
pub struct Cursor;
