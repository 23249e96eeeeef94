//! Due times of one client's requests under a rate that changes.

use std::sync::Arc;

use super::curve::RateCurve;
use super::rate::later;
use crate::dist::Dist;
use crate::plan::Arrivals;
use crate::rng::{Stream, StreamOwner, Use};
use crate::time::Nanos;

/// The shared part of the schedules of a group's clients under a rate that changes; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct CurveGaps {
    curve: Arc<RateCurve>,
    clients: u64,
    /// Requests of a client that are due at once: 1, but for bursts.
    burst: u64,
    /// The gaps, and the factor that turns their draws into requests of the group; `None` for constant arrivals and bursts.
    drawn: Option<(Arc<Dist>, f64)>,
}

impl CurveGaps {
    /// The gaps of clients that together follow a curve. The arrivals are open ones, whose shape can be scaled.
    pub(super) fn new(arrivals: &Arrivals, curve: Arc<RateCurve>, clients: u64) -> CurveGaps {
        let mean = clients as f64;
        let drawn = match arrivals {
            Arrivals::Closed => panic!("closed loop has no schedule"),
            Arrivals::Trace => panic!("the rows of a trace say when they are due"),
            Arrivals::Constant | Arrivals::Bursts(_) => None,
            Arrivals::Poisson => Some((Arc::new(Dist::Exponential { mean }), 1.0)),
            Arrivals::Shape(dist) => {
                let factor = dist.factor_to_mean(mean).expect("the shape was checked");
                Some((Arc::new(dist.clone()), factor))
            }
        };
        let burst = match arrivals {
            Arrivals::Bursts(size) => u64::from(*size).max(1),
            _ => 1,
        };
        CurveGaps { curve, clients, burst, drawn }
    }

    /// These gaps for another number of clients that share the rate.
    pub(super) fn shared_by(&self, clients: u64) -> CurveGaps {
        let share = clients as f64 / self.clients as f64;
        let drawn = self.drawn.as_ref().map(|(dist, factor)| (Arc::clone(dist), factor * share));
        CurveGaps { curve: Arc::clone(&self.curve), clients, burst: self.burst, drawn }
    }
}

/// The due times of one client under a rate that changes.
#[derive(Clone, Debug)]
pub(super) struct AlongCurve {
    gaps: CurveGaps,
    client: u64,
    stream: Stream,
    /// Requests of the group, at a rate of 1, up to the request of the last call, and 2^-64ths of one; 0 for constant
    /// arrivals and bursts.
    sum: u64,
    fraction: u64,
    /// The piece of the curve in which the last request was due.
    piece: usize,
}

impl AlongCurve {
    pub(super) fn new(gaps: &CurveGaps, owner: StreamOwner) -> AlongCurve {
        let stream = Stream::new(owner, Use::Gap);
        AlongCurve { gaps: gaps.clone(), client: owner.client, stream, sum: 0, fraction: 0, piece: 0 }
    }

    /// The due times from `begin_ns` on of the client with this place among those that share the rate. Constant arrivals go on with
    /// the first request of the curve that is not due before.
    pub(super) fn from(gaps: &CurveGaps, owner: StreamOwner, place: u64, begin_ns: Nanos) -> AlongCurve {
        let mut along = AlongCurve::new(gaps, owner);
        let before = gaps.curve.requests_before(begin_ns);
        if gaps.drawn.is_some() {
            // The conversion saturates.
            along.sum = before as u64;
            along.fraction = ((before - along.sum as f64) * (1u128 << 64) as f64) as u64;
            return along;
        }
        let mut first = libm::ceil(before).max(0.0) as u64;
        // The integral and its inverse are rounded apart from each other.
        while first > 0 && gaps.curve.time_of((first - 1) as f64, &mut along.piece) >= begin_ns {
            first -= 1;
        }
        while gaps.curve.time_of(first as f64, &mut along.piece) < begin_ns {
            first += 1;
        }
        along.client = first.saturating_add(place);
        along
    }

    /// Due time of request `i`. Drawn gaps are added up, so the schedule must be asked for each request once, and in
    /// order.
    pub(super) fn due(&mut self, i: u64) -> Nanos {
        let Some((dist, factor)) = &self.gaps.drawn else { return self.due_at_equal_distances(i) };
        let gap = dist.draw(self.stream.draw(i)).max(0.0) * factor;
        self.sum = later(self.sum, &mut self.fraction, gap);
        self.time_of_sum()
    }

    /// Follows a curve that equals the old one up to a moment before which request `i` was not due. Returns the new due
    /// time of that request, the one of the last call.
    pub(super) fn follow(&mut self, curve: &Arc<RateCurve>, i: u64) -> Nanos {
        self.gaps.curve = Arc::clone(curve);
        match &self.gaps.drawn {
            None => self.due_at_equal_distances(i),
            Some(_) => self.time_of_sum(),
        }
    }

    /// The time at which the group reaches the sum of the gaps.
    fn time_of_sum(&mut self) -> Nanos {
        let requests = self.sum as f64 + self.fraction as f64 / (1u128 << 64) as f64;
        self.gaps.curve.time_of(requests, &mut self.piece)
    }

    /// Due time of request `i` of constant arrivals, or of bursts.
    fn due_at_equal_distances(&mut self, i: u64) -> Nanos {
        let first = i - i % self.gaps.burst;
        let number = u128::from(first) * u128::from(self.gaps.clients) + u128::from(self.client);
        self.gaps.curve.time_of(number as f64, &mut self.piece)
    }

    /// The number of the first request from `i` on that is due at `until_ns` or later; `None` where gaps are drawn.
    pub(super) fn first_at(&mut self, until_ns: Nanos, i: u64) -> Option<u64> {
        if self.gaps.drawn.is_some() {
            return None;
        }
        let burst = self.gaps.burst;
        let before = self.gaps.curve.requests_before(until_ns) - self.client as f64;
        let bursts = libm::ceil(before / (self.gaps.clients as f64 * burst as f64)).max(0.0) as u64;
        // The request that is next may be in the middle of a burst.
        let mut first = bursts.saturating_mul(burst).max(i - i % burst);
        // The integral and its inverse are rounded apart from each other.
        while first > i && self.due_at_equal_distances(first - 1) >= until_ns {
            first = (first - burst).max(i - i % burst);
        }
        while self.due_at_equal_distances(first) < until_ns {
            first = first.saturating_add(burst);
        }
        Some(first.max(i))
    }

    /// Moves to `until_ns`, and returns the expected number of requests that are due before it; one of them is due at
    /// `due_ns`.
    pub(super) fn pass_estimated(&mut self, due_ns: Nanos, until_ns: Nanos) -> u64 {
        let curve = &self.gaps.curve;
        let (from, to) = (curve.requests_before(due_ns), curve.requests_before(until_ns));
        // The conversions saturate.
        (self.sum, self.fraction) = (to as u64, 0);
        libm::round((to - from).max(0.0) / self.gaps.clients as f64) as u64 + 1
    }
}
