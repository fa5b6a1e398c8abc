// Log lines of a cloud's load balancers and networks.

import { float, type Value, type ValueObject } from '../event/value.ts'
import { parseDecimal, parseInteger } from './number.ts'

/** Fields of flow logs that are integers; all others are text. */
export const flowLogFields: Readonly<Record<string, 'integer' | 'string'>> = {
  version: 'integer',
  account_id: 'string',
  interface_id: 'string',
  srcaddr: 'string',
  dstaddr: 'string',
  srcport: 'integer',
  dstport: 'integer',
  protocol: 'integer',
  packets: 'integer',
  bytes: 'integer',
  start: 'integer',
  end: 'integer',
  action: 'string',
  log_status: 'string',
  vpc_id: 'string',
  subnet_id: 'string',
  instance_id: 'string',
  tcp_flags: 'integer',
  type: 'string',
  pkt_srcaddr: 'string',
  pkt_dstaddr: 'string',
  region: 'string',
  az_id: 'string',
  sublocation_type: 'string',
  sublocation_id: 'string',
  pkt_src_aws_service: 'string',
  pkt_dst_aws_service: 'string',
  flow_direction: 'string',
  traffic_path: 'integer',
  reject_reason: 'string',
  ecs_cluster_arn: 'string',
  ecs_cluster_name: 'string',
  ecs_container_instance_arn: 'string',
  ecs_container_instance_id: 'string',
  ecs_container_id: 'string',
  ecs_second_container_id: 'string',
  ecs_service_name: 'string',
  ecs_task_definition_arn: 'string',
  ecs_task_arn: 'string',
  ecs_task_id: 'string',
  resource_id: 'string',
  encryption_status: 'integer',
  asg_tag: 'string',
  asg_tag_2: 'string',
  instance_tag: 'string',
  instance_tag_2: 'string',
  interface_tag: 'string',
  interface_tag_2: 'string',
  interface_type: 'string',
  next_hop_az_id: 'string',
  next_hop_interface_id: 'string',
  next_hop_interface_type: 'string',
  next_hop_subnet_id: 'string',
  next_hop_vpc_id: 'string',
}

/** The fields of version 2, for a log without a format. */
export const standardFlowLog =
  'version account_id interface_id srcaddr dstaddr srcport dstport protocol packets bytes start end action log_status'

/** The fields of a flow log; a sentence if the line has another format. */
export function parseFlowLog(line: string, format: string): ValueObject | string {
  const names = format.split(' ')
  const parts = line.split(' ')
  if (names.length !== parts.length)
    return `failed to parse flow log: ${names.length} fields expected, ${parts.length} found`
  const fields: ValueObject = {}
  for (let index = 0; index < names.length; index++) {
    const name = names[index] as string
    const text = parts[index] as string
    const type = Object.hasOwn(flowLogFields, name) ? flowLogFields[name] : undefined
    if (type === undefined) return `failed to parse flow log: the field ${name} is not known`
    if (fields[name] !== undefined) return `failed to parse flow log: the field ${name} occurs twice`
    const value = text === '-' ? null : type === 'string' ? text : parseInteger(text)
    if (value === undefined) return `failed to parse flow log: the field ${name} is not an integer`
    fields[name] = value
  }
  return fields
}

type Part = 'float' | 'integer' | 'list' | 'text'

const word = /[^ ]+/y
const digits = /[0-9-]+/y
const decimal = /[0-9.-]+/y
const time = /[0-9.:TZ-]+/y
const host = /[0-9a-f.:-]+/y
// A quotation mark inside a quoted field is escaped by a backslash.
const quoted = /"((?:[^"\\]|\\.)*)"/sy

const balancerParts: readonly (readonly [name: string, form: RegExp, part: Part])[] = [
  ['type', /[a-z0-9]+/y, 'text'],
  ['timestamp', time, 'text'],
  ['elb', word, 'text'],
  ['client_host', host, 'text'],
  ['target_host', host, 'text'],
  ['request_processing_time', decimal, 'float'],
  ['target_processing_time', decimal, 'float'],
  ['response_processing_time', decimal, 'float'],
  ['elb_status_code', digits, 'text'],
  ['target_status_code', digits, 'text'],
  ['received_bytes', digits, 'integer'],
  ['sent_bytes', digits, 'integer'],
  ['request', quoted, 'text'],
  ['user_agent', quoted, 'text'],
  ['ssl_cipher', word, 'text'],
  ['ssl_protocol', word, 'text'],
  ['target_group_arn', word, 'text'],
  ['trace_id', quoted, 'text'],
  ['domain_name', quoted, 'text'],
  ['chosen_cert_arn', quoted, 'text'],
  ['matched_rule_priority', digits, 'text'],
  ['request_creation_time', time, 'text'],
  ['actions_executed', quoted, 'text'],
  ['redirect_url', quoted, 'text'],
  ['error_reason', quoted, 'text'],
  ['target_port_list', /"([0-9a-f.:-]+)"|[0-9a-f.:-]+/y, 'list'],
  ['target_status_code_list', /"(-|[0-9]+)"|[0-9]+/y, 'list'],
  ['classification', quoted, 'text'],
  ['classification_reason', quoted, 'text'],
]

/**
 * The fields of a load balancer's log line; a sentence if the line has another format. @param strict whether text after
 * the last known field is an error
 */
export function parseBalancerLog(line: string, strict: boolean): ValueObject | string {
  const fields: ValueObject = {}
  let at = -1
  for (const [name, form, part] of balancerParts) {
    form.lastIndex = at + 1
    const blank = at < 0 || line[at] === ' '
    const match = blank ? form.exec(line) : null
    if (match === null) {
      const rest = JSON.stringify(line.slice(blank ? at + 1 : at))
      return `failed to get field \`${name}\`: Parsing Error: (${rest}, ${blank ? 'TakeWhile1' : 'Char'})`
    }
    at = form.lastIndex
    const text = match[1] ?? match[0]
    let value: Value | undefined
    if (part === 'float') {
      const number = parseDecimal(text)
      value = number === undefined ? undefined : float(number)
    } else if (part === 'integer') value = parseInteger(text)
    else if (part === 'list') value = match[0] === '"-"' ? [] : [text]
    else value = text === '-' ? null : form === quoted ? text.replace(/\\(.)/gs, '$1') : text
    if (value === undefined) return `failed to get field \`${name}\`: ${JSON.stringify(text)} is not a number`
    if (name !== 'request') fields[name] = value
    else if (!splitRequest(value ?? '-', fields)) return 'failed to get field `request_url`'
  }
  const rest = / (TID_[^ ]*)/y
  rest.lastIndex = at
  const identifier = rest.exec(line)
  fields['traceability_id'] = identifier === null ? null : (identifier[1] as string)
  if (identifier !== null) at = rest.lastIndex
  if (strict && at < line.length) return `Log should be fully consumed: ${JSON.stringify(line.slice(at))}`
  return fields
}

/** Splits a request into method, address and protocol at its first and last blank. */
function splitRequest(request: Value, fields: ValueObject): boolean {
  const text = request as string
  const first = text.indexOf(' ')
  const last = text.lastIndexOf(' ')
  if (first === last) return false
  const known = (part: string): Value => (part === '-' ? null : part)
  fields['request_method'] = known(text.slice(0, first))
  fields['request_url'] = text.slice(first + 1, last)
  fields['request_protocol'] = known(text.slice(last + 1))
  return true
}
