//! The rate of requests by the hour of the day in Facebook's pool ETC.

use crate::dist::ETC_ARRIVAL_HOURS;

/// The rate at the beginning of each hour, in requests per microsecond: one divided by the mean gap.
pub(super) const HOURS: [f64; 24] = rates();

const fn rates() -> [f64; 24] {
    let mut rates = [0.0; 24];
    let mut hour = 0;
    while hour < rates.len() {
        let (scale, shape) = ETC_ARRIVAL_HOURS[hour];
        rates[hour] = (1.0 - shape) / scale;
        hour += 1;
    }
    rates
}
