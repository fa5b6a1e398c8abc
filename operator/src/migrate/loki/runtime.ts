// Lines as the container runtime writes them. The source of pods parses them. Stages without `cri` or `docker` expect them as they were.

import { option, type Report } from './context.ts'
import { allOf } from './joining.ts'
import { partsOf } from './stage.ts'
import { type Place, pairsOf, type Tree } from './tree.ts'

export type RuntimeForm = 'cri' | 'docker'

/** The form that stages expect: Docker's if they begin with the member `log` of JSON. */
export function runtimeForm(lists: readonly (Tree | undefined)[]): RuntimeForm {
  const first = lists
    .flatMap((list) => allOf(partsOf(list)))
    .find(({ name }) => ['json', 'regex', 'pattern', 'logfmt'].includes(name))
  const isDocker =
    first?.name === 'json' &&
    pairsOf(option(first, 'expressions')).some(([name, from]) => (from === '' ? name : from) === 'log')
  return isDocker ? 'docker' : 'cri'
}

/** An expression for the line that the runtime has written. */
export function runtimeLine(form: RuntimeForm | undefined): string {
  if (form === undefined) return '.message'
  const time = 'format_timestamp!(timestamp(.timestamp) ?? now(), "%Y-%m-%dT%H:%M:%S%.9fZ")'
  const [stream, line] = ['(string(.stream) ?? "stdout")', '(string(.message) ?? "")']
  return form === 'docker'
    ? `encode_json({ "log": ${line} + "\\n", "stream": ${stream}, "time": ${time} })`
    : `${time} + " " + ${stream} + " F " + ${line}`
}

/** Reports that the program writes lines of the runtime again. */
export function reportRuntime(form: RuntimeForm, joins: boolean, report: Report, place: Place): void {
  const subject = 'lines of the container runtime'
  if (joins) {
    const reason =
      'the source joins lines without the time and stream of the runtime, which `firstline` expects in them'
    report.gap(place, subject, reason, 'Add the stage `cri` before `multiline`, and convert again.')
  }
  const parts = form === 'docker' ? 'as JSON of Docker' : 'with time, stream and flags in front of the text'
  const reason = `without the stage \`cri\` or \`docker\`, the old agent passes on the lines of the runtime ${parts}`
  report.replaced(place, subject, reason, 'The program writes them again. To omit them, add the stage, and convert.')
}
