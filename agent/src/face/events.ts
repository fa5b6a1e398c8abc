// The text form of events, for `tap` and `run`.

export { prettyValue } from '../cli/pretty-json.ts'
export { defaultTapForm, type TapLine, tapFormatter, tapForms } from '../cli/tap-format.ts'
export { isObject } from '../event/value.ts'
export { isFailedJson, parseJson } from '../formats/json.ts'
