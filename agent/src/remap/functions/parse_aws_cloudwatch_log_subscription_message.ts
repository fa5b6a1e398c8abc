// Function `parse_aws_cloudwatch_log_subscription_message`.

import { Timestamp } from '../../event/timestamp.ts'
import { isObject, type Value, type ValueObject } from '../../event/value.ts'
import { isFailedJson, parseJson } from '../../formats/json.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseAwsCloudwatchLogSubscriptionMessage = defineFunction({
  name: 'parse_aws_cloudwatch_log_subscription_message',
  category: 'Parse',
  summary: 'Parses the message of a log subscription.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The message, as JSON text.' }],
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
    (text: string): Result => {
      const message = parseJson(text)
      const wrong = failure('unable to parse the message: it has another form')
      if (isFailedJson(message) || !isObject(message)) return wrong
      const fields: ValueObject = {}
      for (const [from, to] of [
        ['owner', 'owner'],
        ['messageType', 'message_type'],
        ['logGroup', 'log_group'],
        ['logStream', 'log_stream'],
      ] as const) {
        if (typeof message[from] !== 'string') return wrong
        fields[to] = message[from]
      }
      if (!/^(DATA|CONTROL)_MESSAGE$/.test(String(message['messageType']))) return wrong
      const filters = message['subscriptionFilters']
      const events = message['logEvents']
      if (!Array.isArray(filters) || !filters.every((filter) => typeof filter === 'string') || !Array.isArray(events)) {
        return wrong
      }
      fields['subscription_filters'] = filters
      const logEvents: Value[] = []
      for (const event of events) {
        if (!isObject(event)) return wrong
        const { id, timestamp, message: line } = event
        if (typeof id !== 'string' || typeof line !== 'string') return wrong
        if (typeof timestamp !== 'number' || !Number.isInteger(timestamp)) return wrong
        logEvents.push({ id, timestamp: new Timestamp(timestamp, 0), message: line })
      }
      fields['log_events'] = logEvents
      return fields
    },
})
