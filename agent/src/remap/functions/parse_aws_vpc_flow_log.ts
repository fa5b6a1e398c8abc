// Function `parse_aws_vpc_flow_log`.

import { flowLogFields, parseFlowLog, standardFlowLog } from '../../formats/aws-log.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseAwsVpcFlowLog = defineFunction({
  name: 'parse_aws_vpc_flow_log',
  category: 'Parse',
  summary: "Parses a line of a virtual network's flow log. `-` becomes null.",
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The line.' },
    {
      name: 'format',
      kind: kinds.string,
      required: false,
      description: 'Names of the fields; those of version 2 if absent.',
    },
  ],
  returns: kinds.objectOf(
    Object.fromEntries(
      Object.entries(flowLogFields).map(([name, type]) => [
        name,
        (type === 'integer' ? kinds.integer : kinds.string).or(kinds.null),
      ]),
    ),
  ),
  fallible: 'always',
  errors: ['The number of fields differs.', 'A field is unknown, or its value is invalid.'],
  pure: true,
  examples: [
    {
      source: 'parse_aws_vpc_flow_log!("5 vpc-abc -", format: "version vpc_id tcp_flags").vpc_id',
      result: '"vpc-abc"',
    },
    {
      source:
        'parse_aws_vpc_flow_log!("2 123 eni-1 10.0.0.1 10.0.0.2 443 4711 6 10 840 1620140761 1620140821 ACCEPT OK").srcport',
      result: '443',
    },
    {
      source: 'parse_aws_vpc_flow_log("1  2", format: "version type vpc_id") ?? 0',
      result: '{ "type": "", "version": 1, "vpc_id": "2" }',
    },
    { source: 'parse_aws_vpc_flow_log("1 2", format: "version version") ?? "twice"', result: '"twice"' },
    { source: 'parse_aws_vpc_flow_log("1 2 3") ?? "another format"', result: '"another format"' },
  ],
  compile: () => (line: string, format: string | undefined) => {
    const fields = parseFlowLog(line, format ?? standardFlowLog)
    return typeof fields === 'string' ? failure(fields) : fields
  },
})
