// Log lines of the load balancers and networks of a cloud.

import { float, type Value, type ValueObject } from '../event/value.ts'
import { parseDecimal } from './number.ts'
import { bounded } from './regex-linear.ts'

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

/** Fields of version 2, the ones of a log without a format. */
export const standardFlowLog =
  'version account_id interface_id srcaddr dstaddr srcport dstport protocol packets bytes start end action log_status'

/** The fields of a flow log; a sentence if the line is of another form. */
export function parseFlowLog(line: string, format: string): ValueObject | string {
  const names = format.trim().split(/\s+/)
  const parts = line.trim().split(/\s+/)
  if (names.length !== parts.length)
    return `failed to parse flow log: ${names.length} fields expected, ${parts.length} found`
  const fields: ValueObject = {}
  for (let index = 0; index < names.length; index++) {
    const name = names[index] as string
    const text = parts[index] as string
    const type = Object.hasOwn(flowLogFields, name) ? flowLogFields[name] : undefined
    if (type === undefined) return `failed to parse flow log: the field ${name} is not known`
    if (text === '-') fields[name] = null
    else if (type === 'string') fields[name] = text
    else if (/^[+-]?\d{1,15}$/.test(text)) fields[name] = Number(text)
    else return `failed to parse flow log: the field ${name} is not an integer`
  }
  return fields
}

type Part = 'text' | 'optional' | 'quoted' | 'float' | 'integer'

const balancerParts: readonly (readonly [string, Part])[] = [
  ['type', 'text'],
  ['timestamp', 'text'],
  ['elb', 'text'],
  ['client_host', 'text'],
  ['target_host', 'optional'],
  ['request_processing_time', 'float'],
  ['target_processing_time', 'float'],
  ['response_processing_time', 'float'],
  ['elb_status_code', 'text'],
  ['target_status_code', 'optional'],
  ['received_bytes', 'integer'],
  ['sent_bytes', 'integer'],
  ['request', 'quoted'],
  ['user_agent', 'quoted'],
  ['ssl_cipher', 'optional'],
  ['ssl_protocol', 'optional'],
  ['target_group_arn', 'text'],
  ['trace_id', 'quoted'],
  ['domain_name', 'quoted'],
  ['chosen_cert_arn', 'quoted'],
  ['matched_rule_priority', 'optional'],
  ['request_creation_time', 'text'],
  ['actions_executed', 'quoted'],
  ['redirect_url', 'quoted'],
  ['error_reason', 'quoted'],
  ['target_port_list', 'quoted'],
  ['target_status_code_list', 'quoted'],
  ['classification', 'quoted'],
  ['classification_reason', 'quoted'],
]
const quotedNeverNull = new Set(['user_agent', 'trace_id'])
const requestLine = bounded(/^(\S+) (.*?) (\S+)$/)
const piece = /"((?:[^"\\]|\\.)*)"|(\S+)/y

/**
 * The fields of a line of a load balancer; a sentence if the line is of another form.
 * @param strict whether something may stand after the last known field
 */
export function parseBalancerLog(line: string, strict: boolean): ValueObject | string {
  const fields: ValueObject = {}
  let at = 0
  for (const [name, part] of balancerParts) {
    piece.lastIndex = at
    const match = piece.exec(line)
    const text = match?.[1] ?? match?.[2]
    if (match === null || text === undefined || (part === 'quoted') !== (match[1] !== undefined)) {
      return `failed to get field \`${name}\`: Parsing Error: (${JSON.stringify(line.slice(at))}, Char)`
    }
    at = piece.lastIndex
    while (line[at] === ' ') at++
    let value: Value = text
    if (part === 'float') {
      const number = parseDecimal(text)
      if (number === undefined) return `failed to get field \`${name}\`: it is not a number`
      value = float(number)
    } else if (part === 'integer') {
      if (!/^-?\d{1,15}$/.test(text)) return `failed to get field \`${name}\`: it is not an integer`
      value = Number(text)
    } else if (text === '-' && (part === 'optional' || (part === 'quoted' && !quotedNeverNull.has(name)))) {
      value = null
    }
    if (name === 'request') {
      const request = requestLine.exec(text)
      if (request === null) return 'failed to get field `request`'
      fields['request_method'] = request[1] as string
      fields['request_url'] = request[2] as string
      fields['request_protocol'] = request[3] as string
    } else {
      fields[name] = value
    }
  }
  const rest = /^(TID_\S+)\s*/.exec(line.slice(at))
  fields['traceability_id'] = rest === null ? null : (rest[1] as string)
  if (strict && line.slice(at + (rest?.[0].length ?? 0)).trim() !== '') return 'Log should be fully consumed'
  return fields
}
