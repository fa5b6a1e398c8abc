// Fluent Bit configurations inside other files: the files of a ConfigMap or a Secret, and the sections in chart values.
// The chart has default sections for those that the values omit.

import type { NamedText } from '../draft.ts'
import { type Inner, innerTexts } from '../inner.ts'
import { below, isMap, itemsOf, type Tree, textOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'
import { labelsIn } from './label-map.ts'
import { isClassic, isConfiguration, isPart } from './text.ts'

export interface Embedded {
  /** The main file of the configuration. */
  readonly mains: readonly NamedText[]
  /** All texts, including those that the main file includes. */
  readonly all: readonly Inner[]
  readonly variables: ReadonlyMap<string, string>
}

/** The defaults of the Fluent Bit chart for missing values. */
const byDefault: Readonly<Record<string, string>> = {
  inputs: `[INPUT]
    Name tail
    Path /var/log/containers/*.log
    multiline.parser docker, cri
    Tag kube.*
    Mem_Buf_Limit 5MB
    Skip_Long_Lines On
[INPUT]
    Name systemd
    Tag host.*
    Systemd_Filter _SYSTEMD_UNIT=kubelet.service
    Read_From_Tail On`,
  filters: `[FILTER]
    Name kubernetes
    Match kube.*
    Merge_Log On
    Keep_Log Off
    K8S-Logging.Parser On
    K8S-Logging.Exclude On`,
  outputs: `[OUTPUT]
    Name es
    Match kube.*
    Host elasticsearch-master
    Logstash_Format On
    Retry_Limit False
[OUTPUT]
    Name es
    Match host.*
    Host elasticsearch-master
    Logstash_Format On
    Logstash_Prefix node
    Retry_Limit False`,
}

/** The sections of the chart in the order in which the chart joins them. */
const order = ['customParsers', 'service', 'inputs', 'filters', 'outputs']

const isScript = (text: string) => /^\s*function\s+[\w.]+\s*\(/m.test(text)

/** The configuration in a YAML file; undefined if there is none. */
export function embedded(given: NamedText): Embedded | undefined {
  if (!/\.(?:ya?ml|json)$/i.test(given.file) || isConfiguration(given.text)) return undefined
  // A quick check first, because other agents also use YAML files.
  if (!/\[(?:INPUT|OUTPUT|FILTER)\]|^\s*pipeline:|kind: *Secret/im.test(given.text)) return undefined
  const all = innerTexts(given, (text) => isPart(text) || isScript(text) || labelsIn(text) !== undefined)
  if (!all.some(({ text }) => isConfiguration(text))) return undefined
  const included = new Set(
    all.flatMap(({ text }) =>
      [...text.matchAll(/^\s*(?:@include|(?:parsers|streams)_file:?|- )\s*(\S+)\s*$/gim)].map(([, path = '']) =>
        path.split('/').at(-1),
      ),
    ),
  )
  const patterns = [...included].map((name = '') => new RegExp(`^${name.split('*').map(RegExp.escape).join('.*')}$`))
  const placeOf = ({ name }: Inner) => order.indexOf(name)
  const mains: NamedText[] = all
    .filter(({ name, text }) => isPart(text) && !patterns.some((pattern) => pattern.test(name)))
    .sort((one, next) => placeOf(one) - placeOf(next))
  const trees = treesOf(given, [])
  for (const values of trees) mains.push(...defaultsFor(values))
  return { mains, all, variables: new Map(trees.flatMap(variablesOf)) }
}

/** The sections of the chart that the values leave unchanged. */
function defaultsFor(values: Tree): NamedText[] {
  const config = below(values, 'config')
  if (!isMap(config) || !['inputs', 'filters', 'outputs'].some((part) => isClassic(textOf(below(config, part)) ?? '')))
    return []
  return Object.entries(byDefault).flatMap(([part, text]) =>
    config.value.has(part) ? [] : [{ file: `${values.file} (${part} of the chart)`, text }],
  )
}

/** Variables whose values chart values contain. */
function variablesOf(values: Tree): [string, string][] {
  return itemsOf(below(values, 'env')).flatMap((entry): [string, string][] => {
    const name = textOf(below(entry, 'name'))
    const value = textOf(below(entry, 'value'))
    return name === undefined || value === undefined ? [] : [[name, value]]
  })
}
