// The formats of tapped events, here and in `penstock tap`.

import { isObject, type Value } from '../event/value.ts'
import { isFailedJson, parseJson } from '../formats/json.ts'
import { writeLogfmt } from '../formats/logfmt.ts'
import { styled } from '../formats/pretty.ts'
import { columnsOf, takesColors } from '../terminal.ts'
import { prettyJson } from './pretty-json.ts'

export const tapForms = ['pretty', 'json', 'yaml', 'logfmt'] as const

export interface TapLine {
  readonly kind: string
  /** Where it was seen, if several agents are observed. */
  readonly node?: string
  readonly output?: string
  readonly component_id?: string
  readonly component_kind?: string
  readonly component_type?: string
}

export type TapFormat = (line: TapLine, text: string) => string

/** For people on a terminal, `json` for programs. */
export const defaultTapForm = (): (typeof tapForms)[number] => (process.stdout.isTTY ? 'pretty' : 'json')

export async function tapFormatter(name: string, meta: boolean): Promise<TapFormat> {
  if (name === 'pretty') return prettyTap(takesColors(process.stdout))
  const event = await eventFormatter(name)
  if (!meta) return (_line, text) => event(eventText(text))
  if (name === 'json') return (line, text) => `${JSON.stringify(metaOf(line)).slice(0, -1)},"event":${eventText(text)}}`
  return (line, text) => {
    const { node, output, component_kind: kind, component_type: type } = line
    const where = node === undefined ? '' : ` on ${node}`
    return `[${kind} ${output} (${type})${where}]${name === 'yaml' ? '\n' : ' '}${event(eventText(text))}`
  }
}

/** Prefixes the component, because an event is shown at each step. */
function prettyTap(color: boolean): TapFormat {
  return ({ output = '', node }, text) => {
    const place = `[${node === undefined ? output : `${output} on ${node}`}]`
    const columns = columnsOf(process.stdout)
    const left = columns === undefined ? undefined : columns - place.length - 1
    return `${styled(place, 'dim', color)} ${prettyJson(eventText(text), { color, columns: left })}`
  }
}

function metaOf({ node, output, component_id, component_kind, component_type }: TapLine): object {
  return { node, output, component_id, component_kind, component_type }
}

/** The event text as the agent wrote it, with all digits of numbers: it is the last member of its line. */
function eventText(line: string): string {
  return line.slice(line.indexOf(',"event":') + ',"event":'.length, -1)
}

async function eventFormatter(name: string): Promise<(text: string) => string> {
  if (name === 'json') return (text) => text
  if (name === 'logfmt') {
    return (text) => {
      const value = parseJson(text)
      return !isFailedJson(value) && isObject(value as Value) ? writeLogfmt(value as { [key: string]: Value }) : text
    }
  }
  const { stringify } = await import('yaml')
  return (text) => `---\n${stringify(JSON.parse(text)).trimEnd()}`
}
