// The default theme, with commands whose comments stay in sight on a narrow screen.

import DefaultTheme from 'vitepress/theme'
import './commands.css'

export default DefaultTheme
