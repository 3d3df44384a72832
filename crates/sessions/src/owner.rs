//! stub
use std::path::Path;
pub struct Owner; impl Owner{pub fn claim(_p:&Path)->std::io::Result<Owner>{Ok(Owner)} pub fn name(&self)->&str{""}}
pub fn is_alive(_p:&Path,_n:&str)->bool{true}
