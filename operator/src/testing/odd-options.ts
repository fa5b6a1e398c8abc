// Complete configurations with an unknown option, once in each plugin.

import { isMap, isSeq, parseDocument, type YAMLMap } from 'yaml'
import type { CorpusCase } from './corpus.ts'

export const oddOption = 'zzz_odd_option'

/** The texts of a case, with the option in one plugin per text; empty for texts within other files. */
export function withOddOptions({ agent, file, text }: CorpusCase): readonly string[] {
  const lines = linesOf[agent]
  if (lines !== undefined && !/\.(?:ya?ml|json)$/.test(file)) {
    const all = text.split('\n')
    return all.flatMap((line, index) => {
      const odd = lines(line)
      return odd === undefined ? [] : [all.toSpliced(index + 1, 0, odd).join('\n')]
    })
  }
  const places = mapsOf[agent]
  if (places === undefined || !/\.ya?ml$/.test(file)) return []
  const count = placesIn(text, places).length
  return Array.from({ length: count }, (_, index) => {
    const document = parseDocument(text)
    placesIn(document, places)[index]?.set(oddOption, 1)
    return String(document)
  })
}

/**
 * Plugins that the conversion drops: the guide says that Penstock does their work in another way, so their options do not matter. For
 * `record_reformer`, each unknown option is a field.
 */
const replaced = /^\s*@type\s+(?:null|prometheus\w*|monitor_agent|secondary_file|record_reformer)$/
const replacedBlocks = /^(?:logging|local\.file|remote\.[\w.]+|declare|foreach|pods)\b/

const linesOf: Readonly<Record<string, (line: string) => string | undefined>> = {
  'fluent-bit': (line) => (/^\s*\[(?:INPUT|FILTER|OUTPUT)\]\s*$/i.test(line) ? `    ${oddOption} 1` : undefined),
  fluentd: (line) => (/^\s*@type\s+\S+\s*$/.test(line) && !replaced.test(line) ? `  ${oddOption} 1` : undefined),
  alloy: (line) =>
    /^[a-z_.]+(?: "\w+")? \{$/.test(line) && !replacedBlocks.test(line) ? `  ${oddOption} = 1` : undefined,
}

/** Paths to plugins. `*` matches each member or item, and `=` the value of the only member, unless its members are names. */
const mapsOf: Readonly<Record<string, readonly string[]>> = {
  vector: ['sources.*', 'transforms.*', 'sinks.*'],
  otel: ['receivers.*', 'processors.*', 'exporters.*', 'receivers.*.operators.*'],
  filebeat: ['filebeat.inputs.*', 'processors.*.=', 'output.=', 'filebeat.inputs.*.processors.*.='],
  promtail: [
    'scrape_configs.*',
    'clients.*',
    'scrape_configs.*.pipeline_stages.*.=',
    'scrape_configs.*.relabel_configs.*',
  ],
}

/** Stages whose option names are label names. */
const namers: ReadonlySet<string> = new Set(['labels', 'static_labels', 'structured_metadata'])

function placesIn(given: string | ReturnType<typeof parseDocument>, paths: readonly string[]): readonly YAMLMap[] {
  const document = typeof given === 'string' ? parseDocument(given) : given
  if (document.errors.length > 0) return []
  return paths.flatMap((path) => {
    let found: readonly unknown[] = [document.contents]
    for (const name of path.split('.')) {
      found = found.flatMap((node) => {
        if (isSeq(node)) return name === '*' ? node.items : []
        if (!isMap(node)) return []
        if (name === '*') return node.items.map(({ value }) => value)
        if (name === '=') return node.items.flatMap(({ key, value }) => (namers.has(String(key)) ? [] : [value]))
        return [node.get(name)]
      })
    }
    return found.filter(isMap)
  })
}
