// The time of an event in the forms that old agents send.

/** The time of the event, as an expression. */
export const eventTime = 'timestamp(.timestamp) ?? now()'

/**
 * Seconds since 1970 with a fraction, as an expression. Like the old agents, it adds the fraction to the whole seconds: the quotient of the
 * nanoseconds and a billion would have other last digits.
 */
export const unixSeconds = (time = eventTime): string =>
  `to_unix_timestamp(${time}) + mod(to_unix_timestamp(${time}, unit: "nanoseconds"), 1000000000) / 1000000000.0`
