// Function `parse_aws_cloudwatch_log_subscription_message`.

import { Timestamp } from '../../event/timestamp.ts'
import { type Bytes, fieldNames, isObject, type Value, type ValueObject } from '../../event/value.ts'
import { isFailedJson, parseJson } from '../../formats/json.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseAwsCloudwatchLogSubscriptionMessage = defineFunction({
  name: 'parse_aws_cloudwatch_log_subscription_message',
  category: 'Parse',
  summary: 'Parses the message of a log subscription.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The message, as JSON text.' }],
  returns: kinds.objectOf({
    owner: kinds.string,
    message_type: kinds.string,
    log_group: kinds.string,
    log_stream: kinds.string,
    subscription_filters: kinds.arrayEach(kinds.string),
    log_events: kinds.arrayEach(
      kinds.objectOf({ id: kinds.string, timestamp: kinds.timestamp, message: kinds.string }),
    ),
  }),
  fallible: 'always',
  errors: ['The text has another format.'],
  pure: true,
  examples: [
    {
      source:
        'parse_aws_cloudwatch_log_subscription_message!(s\'{"messageType": "DATA_MESSAGE", "owner": "1", "logGroup": "g", "logStream": "s", "subscriptionFilters": ["D"], "logEvents": [{"id": "4", "timestamp": 1690000000123, "message": "hi"}]}\').log_events',
      result: '[{ "id": "4", "message": "hi", "timestamp": t\'2023-07-22T04:26:40.123Z\' }]',
    },
    { source: 'parse_aws_cloudwatch_log_subscription_message("{}") ?? "no message"', result: '"no message"' },
    { source: 'parse_aws_cloudwatch_log_subscription_message("no JSON") ?? "no message"', result: '"no message"' },
  ],
  compile:
    () =>
    (text: string | Bytes): Result => {
      const message = typeof text === 'string' ? parseJson(text) : undefined
      const wrong = failure('unable to parse the message: it has another form')
      if (message === undefined || isFailedJson(message) || !isObject(message)) return wrong
      const { owner, messageType, logGroup, logStream, subscriptionFilters, logEvents } = message
      // Other fields are not accepted.
      if (fieldNames(message).length > 6) return wrong
      if (typeof owner !== 'string' || typeof logGroup !== 'string' || typeof logStream !== 'string') return wrong
      if (messageType !== 'DATA_MESSAGE' && messageType !== 'CONTROL_MESSAGE') return wrong
      if (!Array.isArray(subscriptionFilters) || !subscriptionFilters.every((filter) => typeof filter === 'string')) {
        return wrong
      }
      const events = Array.isArray(logEvents) ? logEvents.map(eventOf) : [undefined]
      if (!events.every((event) => event !== undefined)) return wrong
      return {
        owner,
        message_type: messageType,
        log_group: logGroup,
        log_stream: logStream,
        subscription_filters: subscriptionFilters,
        log_events: events,
      }
    },
})

/** An event of the message; undefined if it has another form. */
function eventOf(event: Value): ValueObject | undefined {
  if (!isObject(event) || fieldNames(event).length !== 3) return undefined
  const { id, timestamp, message } = event
  if (typeof id !== 'string' || typeof message !== 'string') return undefined
  if (typeof timestamp !== 'number' || !Number.isInteger(timestamp)) return undefined
  return { id, timestamp: new Timestamp(timestamp, 0), message }
}
