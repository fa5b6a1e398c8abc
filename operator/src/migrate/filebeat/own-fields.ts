// Fields that Filebeat sets itself and that events of a Pipeline do not have. A condition, a name or a processor that reads them is a gap.

import { option, type Part, type Report, textIn, textsIn } from '../loki/context.ts'
import { below, isList, isMap, itemsOf, type Tree, textOf } from '../loki/tree.ts'

const absent: readonly RegExp[] = [
  /^(?:agent|beat|ecs|observer|cloud)(?:\.|$)/,
  /^host\.(?:name|hostname|id|ip|mac|architecture|containerized|os)(?:\.|$)/,
  /^log\.offset$/,
  /^prospector\.type$/,
  /^kubernetes\.(?:namespace_uid|namespace_annotations|node\.(?:uid|hostname|annotations)|cronjob)(?:\.|$)/,
  /^container\.(?:name|labels)(?:\.|$)/,
  /^docker\.container(?:\.|$)/,
]

/** Fields with the name of the machine. Events have those that the configuration reads after the processors of inputs. */
const ofMachine = ['host.name', 'host.hostname', 'agent.hostname', 'agent.name', 'beat.hostname', 'beat.name']

/** Whether Filebeat sets a field that events here do not have. */
export const isOfFilebeat = (name: string): boolean =>
  !ofMachine.includes(name) && absent.some((pattern) => pattern.test(name))

/** The fields with the name of the machine that a part of the configuration reads. */
export function machineFieldsIn(tree: Tree | undefined): readonly string[] {
  if (isList(tree)) return tree.value.flatMap(machineFieldsIn)
  const text = textOf(tree)?.replaceAll('][', '.')
  if (text !== undefined) return ofMachine.filter((name) => text === name || text.includes(`%{[${name}]`))
  if (!isMap(tree)) return []
  const own = ofMachine.filter((name) => textOf(below(tree, ...name.split('.'))) !== undefined)
  const inner = [...tree.value].filter(([name]) => name !== 'drop_fields' && name !== 'add_fields')
  return [...own, ...inner.flatMap(([, item]) => machineFieldsIn(item))]
}

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
