use super::request::*;
use super::work::Work;
use super::*;
impl Session {
    pub fn has_related_background(&self) -> bool {
        false
    }
}
impl Work<'_> {
    pub fn at_boundary(&mut self) {}
    pub fn sweep_background(&mut self) {}
    pub fn relocate(&mut self, _: &Relocate) -> Answered {
        todo!()
    }
    pub fn background(&mut self, _: &Background) -> Answered {
        todo!()
    }
    pub fn notify(&mut self, _: &Notify) -> Answered {
        todo!()
    }
    pub fn cron(&mut self, _: &CronRequest) -> Answered {
        todo!()
    }
    pub fn gaps(&mut self, _: &[crate::protocol::ids::GapId]) -> Answered {
        todo!()
    }
}
