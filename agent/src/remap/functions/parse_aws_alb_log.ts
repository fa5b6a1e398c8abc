// Function `parse_aws_alb_log`.

import { parseBalancerLog } from '../../formats/aws-log.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

const textOrNull = kinds.string.or(kinds.null)

export const parseAwsAlbLog = defineFunction({
  name: 'parse_aws_alb_log',
  category: 'Parse',
  summary: "Parses a line of an application load balancer's access log. `-` becomes null.",
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The line.' },
    {
      name: 'strict_mode',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether to reject lines with unknown fields.',
    },
  ],
  returns: kinds.objectOf({
    type: kinds.string,
    timestamp: kinds.string,
    elb: kinds.string,
    client_host: kinds.string,
    target_host: textOrNull,
    request_processing_time: kinds.float,
    target_processing_time: kinds.float,
    response_processing_time: kinds.float,
    elb_status_code: kinds.string,
    target_status_code: textOrNull,
    received_bytes: kinds.integer,
    sent_bytes: kinds.integer,
    request_method: kinds.string,
    request_url: kinds.string,
    request_protocol: kinds.string,
    user_agent: kinds.string,
    ssl_cipher: textOrNull,
    ssl_protocol: textOrNull,
    target_group_arn: kinds.string,
    trace_id: kinds.string,
    domain_name: textOrNull,
    chosen_cert_arn: textOrNull,
    matched_rule_priority: textOrNull,
    request_creation_time: kinds.string,
    actions_executed: textOrNull,
    redirect_url: textOrNull,
    error_reason: textOrNull,
    target_port_list: textOrNull,
    target_status_code_list: textOrNull,
    classification: textOrNull,
    classification_reason: textOrNull,
    traceability_id: textOrNull,
  }),
  // Texts of the line may be null although programs rely on strings, and the lists are arrays.
  nominal: true,
  fallible: 'always',
  errors: ['The line has another format.'],
  pure: true,
  examples: [
    {
      source:
        's = s\'http 2018-07-02T22:23:00.186641Z app/lb/50dc 192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://example.com:80/ HTTP/1.1" "curl/7.46.0" - - arn:tg "Root=1-58337262" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"\'\nparse_aws_alb_log!(s).request_url',
      result: '"http://example.com:80/"',
    },
    {
      source:
        's = s\'http 2018-07-02T22:23:00.186641Z app/lb/50dc 192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET /a b HTTP/1.1" "x \\"y\\"" - - arn:tg "-" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" 10.0.0.1:80 "-" "-" "-" TID_1 "new"\'\nv = parse_aws_alb_log!(s, strict_mode: false)\n[v.request_url, v.user_agent, v.trace_id, v.target_port_list, v.target_status_code_list, v.traceability_id]',
      result: '["/a b", "x \\"y\\"", null, ["10.0.0.1:80"], [], "TID_1"]',
    },
    { source: 'parse_aws_alb_log("no such line") ?? {}', result: '{  }' },
    {
      source:
        's = s\'http 2018-07-02T22:23:00.186641Z app/lb/50dc 192.168.131.39:2817 - 0.000 0.001 0.000 200 - 34 366 "GET http://example.com:80/ HTTP/1.1" "curl/7.46.0" - - arn:tg "Root=1-58337262" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" "-" "-" "-" "-"\'\n[parse_aws_alb_log!(s).target_host, parse_aws_alb_log!(s).sent_bytes]',
      result: '[null, 366]',
    },
  ],
  compile: () => (line: string, strict: boolean) => {
    const fields = parseBalancerLog(line, strict)
    return typeof fields === 'string' ? failure(fields) : fields
  },
})
