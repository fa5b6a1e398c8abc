// Processors of Filebeat without a mapping, and alternatives.

import { none, type Refusal } from '../page.ts'

/** Functions that do the work of a processor. */
const nearestCalls: Readonly<Record<string, string>> = {
  parse_aws_vpc_flow_log: 'parse_aws_vpc_flow_log',
  decode_cef: 'parse_cef',
  decode_xml_wineventlog: 'parse_xml',
}

export const refusedProcessors: readonly Refusal[] = [
  none(
    'script',
    'Penstock does not run JavaScript',
    'Rewrite the program as a remap transform; the comment contains its text.',
  ),
  none(
    'rate_limit',
    'no transform limits the rate of events',
    'Limit requests with `request.rate_limit_num` of the sink. This slows the source down and discards nothing.',
  ),
  ...[
    'add_host_metadata',
    'add_cloud_metadata',
    'add_observer_metadata',
    'add_process_metadata',
    'add_session_metadata',
    'add_cloudfoundry_metadata',
    'add_nomad_metadata',
  ].map((name) =>
    none(
      name,
      'Penstock does not look up metadata of the machine',
      'Set fields in a remap transform; events of pods contain the node.',
    ),
  ),
  ...Object.keys(nearestCalls).map((name) => ({
    name,
    reason: '`convert` does not convert this processor',
    nearest: `Use \`${nearestCalls[name] ?? ''}\` in a remap transform.`,
    isHere: true,
  })),
  ...['translate_sid', 'detect_mime_type', 'translate_ldap_attribute', 'add_formatted_index'].map((name) =>
    none(name, 'Penstock has no such data', 'Set the field at the destination.'),
  ),
  none('cache', 'a transform does not keep values between events', 'Look up values at the destination.'),
  none('dns', 'Penstock does not look up addresses', 'Look up addresses at the destination.'),
]
