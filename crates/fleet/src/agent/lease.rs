//! The lease of an agent, which one controller holds at a time.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::agent::member::MemberControl;
use crate::agent::peers::Holding;

/// Pause between two looks of one that waits for the agent to be free.
const LOOK: Duration = Duration::from_millis(50);

/// The right to give an agent orders.
#[derive(Debug, Default)]
pub struct Lease(Mutex<Option<Holder>>);

/// The controller that holds an agent.
#[derive(Debug)]
pub struct Holder {
    /// The number of its session; no other session has it.
    pub number: u64,
    /// Name that the controller gives itself.
    pub controller: String,
    /// Address of the controller's connection.
    pub address: SocketAddr,
    /// Since when it holds the agent.
    pub since: Instant,
    /// The control of its job, once that has begun.
    pub control: Option<MemberControl>,
    /// Keeps the connection that the orders come over.
    pub connection: Holding,
}

impl Lease {
    /// Gives the agent to a controller.
    ///
    /// # Errors
    /// Returns which controller holds the agent already, from where and since when.
    pub fn take(&self, holder: Holder) -> Result<(), String> {
        let mut held = self.held();
        if let Some(other) = &*held {
            return Err(other.words());
        }
        *held = Some(holder);
        Ok(())
    }

    /// Makes the agent free, unless another session holds it by now.
    pub fn release(&self, number: u64) {
        let mut held = self.held();
        if held.as_ref().is_some_and(|holder| holder.number == number) {
            *held = None;
        }
    }

    /// Keeps the control of the job that the holder has begun.
    pub fn has_begun(&self, control: &MemberControl) {
        if let Some(holder) = &mut *self.held() {
            holder.control = Some(control.clone());
        }
    }

    /// Words for the controller that holds the agent, from where and since when; empty when the agent is free.
    pub fn words(&self) -> String {
        self.held().as_ref().map_or(String::new(), Holder::words)
    }

    /// Cuts the job short that is under way, for this reason, and waits until the agent is free.
    pub async fn end(&self, why: &str) {
        let control = self.held().as_ref().and_then(|holder| holder.control.clone());
        if let Some(control) = control {
            control.cut_short(why);
        }
        while self.held().is_some() {
            sleep(LOOK).await;
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Holder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder {
    fn words(&self) -> String {
        let seconds = self.since.elapsed().as_secs_f64();
        format!("{} from {}, for {seconds:.1} s", self.controller, self.address)
    }
}
