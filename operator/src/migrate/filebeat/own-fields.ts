// Fields that Filebeat sets itself and that events of a Pipeline do not have. A condition, a name or a processor that reads them is a gap.

import { option, type Part, type Report, textIn, textsIn } from '../loki/context.ts'
import { below, itemsOf, textOf } from '../loki/tree.ts'

const absent: readonly RegExp[] = [
  /^(?:agent|beat|ecs|observer|cloud)(?:\.|$)/,
  /^host\.(?:name|hostname|id|ip|mac|architecture|containerized|os)(?:\.|$)/,
  /^log\.offset$/,
  /^prospector\.type$/,
  /^kubernetes\.(?:namespace_uid|namespace_annotations|node\.(?:uid|hostname|annotations)|cronjob)(?:\.|$)/,
  /^container\.(?:name|labels)(?:\.|$)/,
  /^docker\.container(?:\.|$)/,
]

/** Whether Filebeat sets a field that events here do not have. */
export const isOfFilebeat = (name: string): boolean => absent.some((pattern) => pattern.test(name))

export const ownFieldReport = (name: string) => ({
  reason: `Filebeat sets \`${name}\` itself; events of a Pipeline do not have it`,
  nearest: 'Set the field in a remap transform before this step, or use a field of the pod or the file.',
})

/** Processors that write or remove the fields in their options. */
const writing: ReadonlySet<string> = new Set([
  ...['add_fields', 'add_labels', 'add_tags', 'drop_fields', 'include_fields', 'drop_event', 'community_id'],
  ...['decode_csv_fields', 'decode_base64_field', 'move_fields'],
])

/** Reports the fields of Filebeat that a processor reads. */
export function reportOwnFields(part: Part, report: Report): void {
  if (writing.has(part.name)) return
  const listed = itemsOf(option(part, 'fields')).flatMap(
    (item) => textOf(item) ?? textOf(below(item, 'from')) ?? textOf(below(item, 'field')) ?? [],
  )
  const names = [textIn(part, 'field') ?? [], listed.length > 0 ? listed : textsIn(part, 'fields')].flat()
  for (const name of names.filter(isOfFilebeat)) {
    const { reason, nearest } = ownFieldReport(name)
    report.gap(part, `${part.name}: ${name}`, reason, nearest)
  }
}
